package dev.tributary.sdk

import java.io.File
import java.math.BigDecimal

private fun table(name: String): Map<String, Any?> =
    Json.readObject(File(System.getProperty("tables", "../tables"), "$name.json").readText())!!

private fun rows(name: String): List<Map<String, Any?>> = (table(name)["cases"] as List<*>).map { it.asObject()!! }

/** Shared tables that the server and the TypeScript SDK pass as well. */
fun tableTests() = Suite("tables").apply {
    test("matching.json: normalised strings and their hashes") {
        val cases = rows("matching")
        for (case in cases) {
            val input = case["input"] as String
            val isEmail = case["field"] == "email"
            val name = "${case["name"]}"
            assertEquals<Any?>(case["normalised"], if (isEmail) normaliseEmail(input) else normalisePhone(input), name)
            assertEquals<Any?>(case["hashes"], if (isEmail) matching(input, null) else matching(null, input), name)
        }
        assertTrue(cases.size >= 60, "cases")
    }
    test("revenue.json: accepted amounts and their value") {
        val cases = rows("revenue")
        for (case in cases) {
            val input = case["input"] as String
            val value: Any = if (case["kind"] == "text") input else input.toDouble()
            assertEquals(case["amount"], decimal(value), "${case["kind"]}: ${case["name"]}")
        }
        assertTrue(cases.size >= 60, "cases")
    }
    test("amounts of other types") {
        assertEquals("9.99", decimal(9.99f))
        assertEquals("7", decimal(7L))
        assertEquals("0.1", decimal(BigDecimal("0.10")))
        assertEquals(null, decimal(BigDecimal("1e400")))
        assertEquals("0", decimal(BigDecimal("1e-400")))
        for (value in listOf(Double.NaN, Double.POSITIVE_INFINITY, null, emptyMap<Any, Any>(), true)) assertEquals(null, decimal(value))
    }
}

/** The JSON reader and writer. */
fun jsonTests() = Suite("json").apply {
    test("writes values as JavaScript does") {
        val value = mapOf("a" to 1.0, "b" to 0.1, "c" to listOf(null, true, 1e21, Double.NaN), "d" to "\"\\\n\u0001ä😀", "e" to 3f)
        assertEquals("""{"a":1,"b":0.1,"c":[null,true,1.0E21,null],"d":"\"\\\n\u0001ä😀","e":3}""", Json.write(value))
        assertEquals("\"\\ud83d!\"", Json.quote("\ud83d!"))
        assertEquals("\"a\\ude00\"", Json.quote("a\ude00"))
    }
    test("reads what it writes") {
        val text = """{"a":[1,-2,0.5,1e30,{"b":{}}],"c":"ä😀\\\"\/\b\f\n\r\t","d":null,"e":[],"f":false}"""
        val value = Json.read(text)
        assertEquals(value, Json.read(Json.write(value)))
        assertEquals("ä😀\\\"/\b\u000c\n\r\t", value.asObject()!!["c"])
    }
    test("rejects what is not JSON") {
        val invalid = listOf(
            "", " ", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "01", "1.", "+1", "nul", "\"", "\"\\x\"", "\"\\u12\"", "\"\\uzzzz\"",
            "\"\n\"", "1 2", "{a:1}", "-", "[".repeat(10_000), "1e", "\u0000",
        )
        for (text in invalid) assertTrue(runCatching { Json.read(text) }.exceptionOrNull() is JsonException, text.take(20))
    }
    test("never fails with another exception on damaged text") {
        val random = java.util.Random(7)
        val text = """{"data":{"sdkEnabled":true,"list":[1,2.5e-3,"x\u00e4\\"],"n":null}}"""
        repeat(20_000) {
            val damaged = StringBuilder(text)
            repeat(1 + random.nextInt(3)) {
                val at = random.nextInt(damaged.length)
                if (random.nextBoolean()) damaged.deleteCharAt(at) else damaged.setCharAt(at, "{}[]\",:\\0e-.u"[random.nextInt(13)])
            }
            try {
                Json.read(damaged.toString())
            } catch (_: JsonException) {
                // Expected.
            }
        }
    }
    test("base64url without padding") {
        val texts = listOf("", "f", "fo", "foo").map { base64Url(it.toByteArray()) }
        assertEquals(listOf("", "Zg", "Zm8", "Zm9v", "_-8"), texts + base64Url(byteArrayOf(-1, -17)))
    }
}
