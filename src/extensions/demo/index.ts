export const extension = { name: "demo" };
