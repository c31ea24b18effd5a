package com.facebook.react.bridge;

import org.jetbrains.annotations.NotNull;

public class Arguments {
    @NotNull public static WritableMap createMap() { throw new RuntimeException(); }
}
