// Seals: each line of the spend log continues the one before it, and each day that is over gets a
// signed head, so that an auditor can find whatever is changed afterwards.
import type { ProgramExtension } from "../../command-line/command.ts";
import { join } from "node:path";
import type { Sealing, SealingExtension, SealingOptions } from "../books/index.ts";
import { createDayCloser } from "./heads/close-days.ts";
import { headCommand, publicKeyCommand } from "./commands.ts";
import { sealKeyOf } from "./heads/seal-key.ts";
import { createRecordProofs } from "./tree/record-proofs.ts";
import { seals } from "./settings.ts";
import { printSealedStatement } from "./statement.ts";
import { createChainWriter } from "./chain/write-chain.ts";

// What a verification needs of lines, heads and trees.
export { NO_SEAL, tipsIn } from "./chain/chain.ts";
export { scanSegment, type SegmentScan, type SettledLine } from "./chain/scan-segment.ts";
export { firstLine, spendIdIn } from "./chain/segment-ends.ts";
export {
  type Head,
  type HeadLine,
  type HeadSegment,
  headTexts,
  parseHead,
  sealsDir,
} from "./heads/heads.ts";
export { coveredLines, recordLeaf, recordLine } from "./heads/make-head.ts";
export { rangesOf, readRange } from "./heads/month-ranges.ts";
export { publicHexOf } from "./heads/seal-key.ts";
export { hasSignature } from "./heads/signed.ts";
export { isWholeTree, readLeaves, treeFile, treeOf } from "./tree/day-tree.ts";
export { createLeafList, type SortedLeaves } from "./tree/leaf-list.ts";
export { hasDetails, leafOf, rootOfProof, wholeLeafOf } from "./tree/merkle.ts";

export const extension: ProgramExtension & SealingExtension = {
  name: "seals",
  settings: [seals],
  commands: {
    "seal head": headCommand,
    "seal public-key": publicKeyCommand,
  },
  openSealing: (options) => (seals.of(options.config).enabled ? createSealing(options) : undefined),
};

function createSealing({ dataDir, clock, diagnose, isClockSteady }: SealingOptions): Sealing {
  const { lookBack, begin, resume } = createChainWriter(join(dataDir, "spend"));
  return {
    lookBack,
    begin,
    resume,
    closeDays: createDayCloser({ dataDir, clock, diagnose, isClockSteady }),
    proofOfRecord: createRecordProofs(dataDir).ofRecord,
    printStatement: (statement, print) =>
      printSealedStatement(
        { dataDir, key: sealKeyOf(dataDir), now: clock.now() },
        statement,
        print,
      ),
  };
}
