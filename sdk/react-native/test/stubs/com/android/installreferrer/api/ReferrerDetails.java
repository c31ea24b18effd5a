package com.android.installreferrer.api;

public class ReferrerDetails {
    public String getInstallReferrer() { throw new RuntimeException(); }
    public long getReferrerClickTimestampSeconds() { throw new RuntimeException(); }
    public long getInstallBeginTimestampSeconds() { throw new RuntimeException(); }
    public long getReferrerClickTimestampServerSeconds() { throw new RuntimeException(); }
    public long getInstallBeginTimestampServerSeconds() { throw new RuntimeException(); }
}
