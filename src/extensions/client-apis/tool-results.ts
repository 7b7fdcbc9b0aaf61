// What tools show beside their texts. In chat completions the result of a tool is a text, so that
// images and files follow in a message of the user, where each call's have a heading.

/** Ends the text of a result whose images and files follow. */
export const SHOWN_BELOW = "(What the tool shows follows in the next message.)";

/** Stands before the images and files of one result. */
export const shownHeading = (callId: string): string => `What the tool call ${callId} shows:`;
