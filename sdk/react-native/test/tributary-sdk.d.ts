// The types of tributary-sdk that this package uses. `tsc --noEmit` checks the package against the real ones.

type Maybe<T> = T | Promise<T>;

export interface InstallReferrer {
  referrer?: string;
  clickAtSeconds?: number;
  installBeginAtSeconds?: number;
  clickAtServerSeconds?: number;
  installBeginAtServerSeconds?: number;
}

export interface Providers {
  installReferrer?(): Maybe<InstallReferrer | null>;
  adServicesToken?(): Maybe<string | null>;
  advertisingId?(): Maybe<string | null>;
  openedUrl?(): Maybe<string | null>;
  userAgent?(): Maybe<string | null>;
}

export interface ConversionValue {
  fineValue: number;
  coarseValue: "low" | "medium" | "high";
  lockWindow: boolean;
  window: number;
}

export interface Consent {
  tracking?: "authorized" | "denied" | "notDetermined" | "restricted" | null;
}

export interface Options {
  providers?: Providers;
  onConversionValue?(value: ConversionValue): Maybe<void>;
}
