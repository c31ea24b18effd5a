package dev.tributary.sdk

/** All suites of the core except those that need a server. */
fun coreSuites() = listOf(
    tableTests(), jsonTests(), queueTests(), answerTests(), enrolmentTests(), privacyTests(), storageTests(),
    interleavingTests(),
)

/** Runs the tests of the core: all, or the suites that are named. */
fun main(arguments: Array<String>) = runSuites(coreSuites(), arguments.toList())
