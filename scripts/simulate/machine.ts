// A machine of the world: what all of its processes share.

import type { Disk } from "./disk.ts";
import type { Network } from "./network.ts";
import type { SimProcess, World } from "./world.ts";

/** What one machine of the world has. */
export interface Machine {
  readonly world: World;
  readonly network: Network;
  readonly disk: Disk;
  /** Called before each change of the disk by the program. It may end the process. */
  readonly beforeChange: (owner: SimProcess, what: string) => void;
}
