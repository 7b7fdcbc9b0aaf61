export const extension = { name: "gemini" };
