// Statements with their proof.
export { printSealedStatement } from "./statement.ts";
