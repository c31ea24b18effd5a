package dev.tributary.sdk

import kotlin.system.exitProcess

/** A list of tests. A small runner, so that the tests need nothing but the compiler. */
class Suite(val name: String) {
    val tests = ArrayList<Pair<String, () -> Unit>>()

    fun test(name: String, body: () -> Unit) {
        tests.add(name to body)
    }
}

fun <T> assertEquals(expected: T, actual: T, what: String = "") {
    if (expected != actual) throw AssertionError("$what\n  expected: $expected\n  actual:   $actual")
}

fun assertTrue(condition: Boolean, what: String) {
    if (!condition) throw AssertionError(what)
}

/** Waits until a condition holds, in real time. */
fun until(what: String, ms: Long = 15_000, condition: () -> Boolean) {
    val end = System.nanoTime() + ms * 1_000_000
    while (!condition()) {
        if (System.nanoTime() > end) throw AssertionError("timed out waiting for $what")
        Thread.sleep(20)
    }
}

/** Runs the suites, or those whose names are given, and prints a result line like cargo's. */
fun runSuites(suites: List<Suite>, wanted: List<String>, cleanUp: () -> Unit = {}) {
    var passed = 0
    val failed = ArrayList<String>()
    for (suite in suites) {
        if (wanted.isNotEmpty() && suite.name !in wanted) continue
        val begun = System.nanoTime()
        for ((name, body) in suite.tests) {
            try {
                body()
                passed++
            } catch (error: Throwable) {
                failed.add("${suite.name}: $name")
                // The format of a failed test of Node, which ./test lists in its summary.
                println("✖ ${suite.name}: $name (0.0ms)")
                error.printStackTrace(System.out)
            }
        }
        println("${suite.name}: ${suite.tests.size} tests, ${(System.nanoTime() - begun) / 1_000_000} ms")
    }
    cleanUp()
    println("test result: ${if (failed.isEmpty()) "ok" else "FAILED"}. $passed passed; ${failed.size} failed;")
    exitProcess(if (failed.isEmpty() && passed > 0) 0 else 1)
}
