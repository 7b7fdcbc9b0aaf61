// Which version of the program this is, as providers and operators see it.

/** The version in package.json; a test compares them. A build of one file has no package.json. */
export const VERSION = "0.1.0";
