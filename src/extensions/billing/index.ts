// What other extensions and the program use of billing.
export { statementCommand, traceCommand } from "./billing-commands.ts";
export { isDay, MONTH } from "./calendar.ts";
export { costRoutes } from "./cost-routes.ts";
export { statement, type Statement } from "./statement.ts";
