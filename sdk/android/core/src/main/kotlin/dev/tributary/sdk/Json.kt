package dev.tributary.sdk

import java.math.BigDecimal
import java.math.BigInteger

/** Thrown for text that is not JSON, and for values that JSON cannot represent. */
internal class JsonException(message: String) : Exception(message)

/** Reads and writes JSON. Values are maps, lists, strings, booleans, numbers and null. */
internal object Json {
    fun write(value: Any?): String = StringBuilder().also { append(it, value, 0) }.toString()

    fun quote(text: String): String = StringBuilder().also { appendText(it, text) }.toString()

    fun read(text: String): Any? = JsonReader(text).document()

    /** Reads an object; null if the text is something else. */
    fun readObject(text: String?): Map<String, Any?>? {
        if (text == null) return null
        return try {
            read(text).asObject()
        } catch (_: JsonException) {
            null
        }
    }

    /** Copies a value, so that the caller may change the original. Throws if JSON cannot represent it. */
    fun copy(value: Any?, depth: Int = 0): Any? {
        if (depth > Limits.JSON_DEPTH) throw JsonException("nested too deeply")
        return when (value) {
            null, is Boolean, is String -> value
            is Number -> copyNumber(value)
            is CharSequence, is Char -> value.toString()
            is Enum<*> -> value.name
            is Map<*, *> -> value.entries.associateTo(LinkedHashMap()) { (name, item) ->
                name.toString() to copy(item, depth + 1)
            }
            is Iterable<*> -> value.map { copy(it, depth + 1) }
            is Array<*> -> value.map { copy(it, depth + 1) }
            else -> throw JsonException("unsupported type ${value.javaClass.name}")
        }
    }

    private fun copyNumber(number: Number): Any? = when (number) {
        is Int, is Long, is Short, is Byte, is BigDecimal, is BigInteger -> number
        is Float -> if (number.isNaN() || number.isInfinite()) null else number
        else -> number.toDouble().let { if (it.isNaN() || it.isInfinite()) null else it }
    }

    private fun append(out: StringBuilder, value: Any?, depth: Int) {
        if (depth > Limits.JSON_DEPTH) throw JsonException("nested too deeply")
        when (value) {
            null, is Boolean -> out.append(value.toString())
            is String -> appendText(out, value)
            is Number -> appendNumber(out, value)
            is Map<*, *> -> appendAll(out, '{', '}', value.entries) { (name, item) ->
                appendText(out, name.toString())
                out.append(':')
                append(out, item, depth + 1)
            }
            is Iterable<*> -> appendAll(out, '[', ']', value) { append(out, it, depth + 1) }
            else -> throw JsonException("unsupported type ${value.javaClass.name}")
        }
    }

    private fun <T> appendAll(out: StringBuilder, open: Char, close: Char, items: Iterable<T>, add: (T) -> Unit) {
        out.append(open)
        var isFirst = true
        for (item in items) {
            if (!isFirst) out.append(',')
            isFirst = false
            add(item)
        }
        out.append(close)
    }

    /** Appends a number. Whole floats have no decimal point, as in JavaScript. */
    private fun appendNumber(out: StringBuilder, number: Number) {
        val double = number.toDouble()
        when {
            number is BigDecimal || number is BigInteger -> out.append(number.toString())
            number !is Double && number !is Float -> out.append(number.toLong())
            double.isNaN() || double.isInfinite() -> out.append("null")
            double == Math.rint(double) && Math.abs(double) < Limits.WHOLE_FLOAT -> out.append(double.toLong())
            else -> out.append(number.toString())
        }
    }

    private fun appendText(out: StringBuilder, text: String) {
        out.append('"')
        for ((index, char) in text.withIndex()) {
            when {
                char == '"' || char == '\\' -> out.append('\\').append(char)
                char == '\n' -> out.append("\\n")
                char == '\r' -> out.append("\\r")
                char == '\t' -> out.append("\\t")
                // UTF-8 cannot encode half of a surrogate pair.
                char < ' ' || isLone(text, index) -> out.append("\\u").append(hex4(char.code))
                else -> out.append(char)
            }
        }
        out.append('"')
    }

    private fun isLone(text: String, index: Int): Boolean {
        val char = text[index]
        if (char.isHighSurrogate()) return index + 1 >= text.length || !text[index + 1].isLowSurrogate()
        return char.isLowSurrogate() && (index == 0 || !text[index - 1].isHighSurrogate())
    }

    private fun hex4(code: Int): String = Integer.toHexString(code).padStart(4, '0')
}

/** A parser for one document. */
private class JsonReader(private val text: String) {
    private var at = 0

    fun document(): Any? {
        val value = value(0)
        skipBlanks()
        if (at < text.length) fail()
        return value
    }

    private fun value(depth: Int): Any? {
        if (depth > Limits.JSON_DEPTH) fail()
        skipBlanks()
        return when (peek()) {
            '{' -> readMap(depth)
            '[' -> list(depth)
            '"' -> string()
            't' -> word("true", true)
            'f' -> word("false", false)
            'n' -> word("null", null)
            else -> number()
        }
    }

    private fun readMap(depth: Int): Map<String, Any?> {
        val map = LinkedHashMap<String, Any?>()
        at++
        skipBlanks()
        if (peek() == '}') return map.also { at++ }
        while (true) {
            skipBlanks()
            if (peek() != '"') fail()
            val name = string()
            skipBlanks()
            expect(':')
            map[name] = value(depth + 1)
            skipBlanks()
            if (peek() == ',') at++ else return map.also { expect('}') }
        }
    }

    private fun list(depth: Int): List<Any?> {
        val list = ArrayList<Any?>()
        at++
        skipBlanks()
        if (peek() == ']') return list.also { at++ }
        while (true) {
            list.add(value(depth + 1))
            skipBlanks()
            if (peek() == ',') at++ else return list.also { expect(']') }
        }
    }

    private fun string(): String {
        val out = StringBuilder()
        at++
        while (true) {
            val char = next()
            when {
                char == '"' -> return out.toString()
                char == '\\' -> out.append(escape())
                char < ' ' -> fail()
                else -> out.append(char)
            }
        }
    }

    private fun escape(): Char = when (val char = next()) {
        '"', '\\', '/' -> char
        'b' -> '\b'
        'f' -> '\u000c'
        'n' -> '\n'
        'r' -> '\r'
        't' -> '\t'
        'u' -> {
            if (at + 4 > text.length) fail()
            val digits = text.substring(at, at + 4)
            at += 4
            if (digits.any { Character.digit(it, 16) < 0 }) fail()
            digits.toInt(16).toChar()
        }
        else -> fail()
    }

    private fun number(): Number {
        val start = at
        while (at < text.length && (text[at] in '0'..'9' || text[at] in "+-.eE")) at++
        val digits = text.substring(start, at)
        if (!NUMBER.matches(digits)) fail()
        return digits.toLongOrNull() ?: digits.toDouble()
    }

    private fun word(word: String, value: Any?): Any? {
        if (!text.startsWith(word, at)) fail()
        at += word.length
        return value
    }

    private fun skipBlanks() {
        while (at < text.length && text[at] in " \t\r\n") at++
    }

    private fun peek(): Char = if (at < text.length) text[at] else fail()

    private fun next(): Char = peek().also { at++ }

    private fun expect(char: Char) {
        if (next() != char) fail()
    }

    private fun fail(): Nothing = throw JsonException("invalid JSON at character $at")
}
