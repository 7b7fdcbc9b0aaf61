// Starts the page: shows what the address says, and listens.
import { listen } from "./live.js";
import { follow } from "./parts.js";

follow();
if (!document.hidden) listen();
