// What other extensions and the program use of the rebuild.
export { rebuildBooks, type RebuildResult } from "./rebuild.ts";
export { rebuildCommand } from "./rebuild-command.ts";
