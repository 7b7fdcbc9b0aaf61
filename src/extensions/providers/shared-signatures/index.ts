// Several workers keep the same signed reasoning, because the results of a call may reach another
// worker than the one that passed the call on.
import { start, type Installer } from "../../../core/extension/installer.ts";
import { openBroadcast } from "../../scale/cluster/index.ts";
import { shareSignatures } from "../turns/index.ts";

export function install(gateway: Installer): void {
  // Once in each process: extensions are installed again at each reload.
  gateway.on(start, ({ on }) => {
    const others = openBroadcast<readonly [id: string, text: string]>("signatures", (note) =>
      keep(...note),
    );
    const keep = shareSignatures((...note) => others.send(note));
    on("close", others.close);
  });
}
