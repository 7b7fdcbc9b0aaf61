// The command `status`: asks the running gateway how it is.
import {
  JSON_OPTION,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../command-line/command.ts";
import { table } from "../../command-line/table.ts";
import { accountTable } from "./accounts.ts";
import { createAdminClient } from "./admin-client.ts";
import { healthOf, lastFault, stateText } from "./health.ts";
import { lookAt, type Look, type ShownStatus } from "./look.ts";
import { countsBetween } from "./rates.ts";
import { refusalsIn, refusalsLine } from "./refusals.ts";

/** Of the secrets only admin.password matters, and the listener says if it is wrong. */
const NO_SECRETS = { withoutSecrets: true };

async function run(args: CommandArguments, terminal: Terminal): Promise<number> {
  const { config } = await terminal.load(args, NO_SECRETS);
  const client = createAdminClient(config);
  const { address } = client;
  let look: Look;
  try {
    look = await lookAt(client);
  } catch (error) {
    const sentence = `not healthy: ${(error as Error).message}`;
    await terminal.answer(args, { healthy: false, sentence, address }, `${sentence}\n`);
    return 1;
  }
  const { status } = look;
  const health = healthOf(status);
  const counts = countsBetween(undefined, look);
  const refusals = refusalsIn(look, counts);
  const text = `${health.sentence}
${factsLine(status)}
${refusalsLine(refusals, counts)}

${modelTable(status)}
${accountTable(status)}`;
  await terminal.answer(args, { ...health, address, ...status, refusals }, text);
  return health.healthy ? 0 : 1;
}

/** What the sentence leaves out. */
const factsLine = ({ in_flight, workers, limits, config_loaded_at }: ShownStatus): string =>
  `requests in flight: ${in_flight}; processes: ${workers}; limits in ${limits.store}; ` +
  `configuration of ${config_loaded_at}`;

const modelTable = ({ models }: ShownStatus): string =>
  table(
    ["model", "provider", "state", "failures", "last fault"],
    models.map((model) => ({
      model: model.model,
      provider: model.provider,
      state: stateText(model),
      failures: model.breaker.failures,
      "last fault": lastFault(model) || undefined,
    })),
  );

export const statusCommand: Command = {
  summary: "how the running gateway is: healthy or not, its models, breakers and limits",
  example: "status --config gateway.json",
  options: { json: JSON_OPTION },
  run,
};
