export const extension = { name: "postgres" };
