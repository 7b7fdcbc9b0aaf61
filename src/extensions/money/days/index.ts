// The closed days, and the reading of files, for all extensions that read the books.
export * from "./coverage.ts";
export * from "./days.ts";
export * from "./merkle.ts";
export * from "./read-lines.ts";
