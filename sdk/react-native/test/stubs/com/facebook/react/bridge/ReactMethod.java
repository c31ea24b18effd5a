package com.facebook.react.bridge;

import java.lang.annotation.*;

@Retention(RetentionPolicy.RUNTIME) public @interface ReactMethod {}
