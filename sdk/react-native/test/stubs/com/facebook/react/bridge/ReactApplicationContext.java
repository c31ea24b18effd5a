package com.facebook.react.bridge;

public class ReactApplicationContext extends ReactContext {}
