export const selfTest = async (): Promise<number> => 0;
