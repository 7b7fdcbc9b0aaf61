export const extension = { name: "anthropic" };
