// The one error of the books that commands tell from others.

/**
 * The usage records cannot be written to, or not be read in full, until somebody has mended them.
 */
export class BooksFault extends Error {}
