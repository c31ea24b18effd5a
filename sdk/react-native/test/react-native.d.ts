// The parts of React Native that this package uses, so that its types can be checked without React Native.

export const NativeModules: Record<string, unknown>;
export const Platform: { OS: string };
export const Linking: { getInitialURL(): Promise<string | null> };
