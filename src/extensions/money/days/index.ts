// What the extensions that read the files of the books have in common.
export * from "./coverage.ts";
export * from "./days.ts";
export * from "./merkle.ts";
export * from "./read-lines.ts";
