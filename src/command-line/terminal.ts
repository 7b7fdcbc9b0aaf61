// What a command is given: the terminal that it speaks to, and the configuration that it acts by.
import { existsSync, statSync } from "node:fs";
import type { CommandArguments, CommandConfig, LoadForCommand, Terminal } from "./command.ts";
import { loadConfig } from "../config/load.ts";
import type { Loader } from "../config/loader.ts";
import type { Process } from "./process.ts";
import { createProgressLine } from "./progress.ts";
import { createScreen } from "./screen.ts";

export function createTerminal(world: Process, loader: Loader, stopped: AbortSignal): Terminal {
  const { env } = world;
  const progress = createProgressLine(world.stderr);

  function print(text: string): Promise<void> {
    progress?.clear();
    return world.print(text);
  }

  async function load(
    { values }: CommandArguments,
    { withoutSecrets = false, here = false, members }: LoadForCommand = {},
  ): Promise<CommandConfig> {
    const file = values["config"];
    const secretsOptional = withoutSecrets;
    const options = { file, env, loader, here, serves: here, secretsOptional, members };
    const { config, extensions, source } = await loadConfig(options);
    // What root writes must be the owner's, or a gateway that is not root could not read it.
    if (withoutSecrets && existsSync(config.data_dir)) world.actAs(statSync(config.data_dir));
    return { config, extensions, source };
  }

  return {
    env,
    print,
    warn(line) {
      progress?.clear();
      world.stderr.write(`chat-gateway: ${line}\n`);
    },
    answer: ({ values }, data, text) =>
      print(values["json"] === undefined ? text : `${JSON.stringify(data)}\n`),
    load,
    screen: createScreen(world.stdout, world.stdin),
    progress,
    stopped,
  };
}
