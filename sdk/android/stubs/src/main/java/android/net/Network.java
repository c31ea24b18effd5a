package android.net;

/** Compile-time stub. */
public class Network {}
