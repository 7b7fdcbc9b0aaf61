// What the books use of this extension.
export { createPostgresStore } from "./store.ts";
