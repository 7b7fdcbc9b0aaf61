// The version of the program, as providers and operators see it.

/** The version in package.json; a test compares them. The bundled file has no package.json. */
export const VERSION = "0.1.0";
