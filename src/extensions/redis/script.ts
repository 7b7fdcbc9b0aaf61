// The script of script.lua, as text. A build of one file puts the text in the place of the reading.
import { readFileSync } from "node:fs";

export const SCRIPT = readFileSync(new URL("script.lua", import.meta.url), "utf8");
