// The command `status`: asks the running gateway how it is.
import {
  JSON_OPTION,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../../command-line/command.ts";
import { table } from "../../../command-line/table.ts";
import { accountTable } from "./accounts.ts";
import { createAdminClient, loadForAdmin } from "./admin-client.ts";
import { healthOf, lastFault, stateText } from "./health.ts";
import { lookAt, type Snapshot, type ShownStatus } from "./look.ts";
import { countsBetween } from "./rates.ts";
import { refusalsIn, refusalsLine } from "./refusals.ts";
import { configurationText, reloadLines } from "./reloads.ts";

async function run(args: CommandArguments, terminal: Terminal): Promise<number> {
  const client = createAdminClient(await loadForAdmin(args, terminal));
  const { address } = client;
  let look: Snapshot;
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
  const head = [health.sentence, ...reloadLines(status), factsLine(status), refusalsLine(counts)];
  const text = `${head.join("\n")}

${modelTable(status)}
${accountTable(status)}`;
  await terminal.answer(
    args,
    { ...health, address, ...status, refusals: refusalsIn(counts) },
    text,
  );
  return health.healthy ? 0 : 1;
}

/** Details beyond the sentence. */
const factsLine = (status: ShownStatus): string =>
  `requests in flight: ${status.in_flight}; processes: ${status.workers}; ` +
  `limits in ${status.limits.store}; ${configurationText(status)}`;

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
