package bfcl

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// language is the language of the functions of a category.
type language int

const (
	python language = iota
	java
	javascript
)

func languageOf(category string) language {
	switch {
	case strings.Contains(category, "javascript"):
		return javascript
	case strings.Contains(category, "java"):
		return java
	}
	return python
}

// Declared types, with the type of a value in Python.
var (
	pythonTypes = map[string]string{"string": "str", "integer": "int", "float": "float", "boolean": "bool", "array": "list", "tuple": "list", "dict": "dict", "any": "str"}
	javaTypes   = map[string]string{
		"byte": "int", "short": "int", "integer": "int", "float": "float", "double": "float", "long": "int", "boolean": "bool", "char": "str",
		"Array": "list", "ArrayList": "list", "Set": "set", "HashMap": "dict", "Hashtable": "dict", "Queue": "list", "Stack": "list", "String": "str", "any": "str",
	}
	javascriptTypes = map[string]string{"String": "str", "integer": "int", "float": "float", "Bigint": "int", "Boolean": "bool", "dict": "dict", "array": "list", "any": "str"}
)

// convert returns the value of an argument as in Python, with the expected type and that of list
// items. Arguments of Java and JavaScript functions are texts in the syntax of the language.
func (l language) convert(details *dict, declared string, value any) (out any, expected, nested string, fault Fault) {
	types := map[language]map[string]string{python: pythonTypes, java: javaTypes, javascript: javascriptTypes}[l]
	expected, ok := types[declared]
	if !ok {
		return nil, "", "", Undecided
	}
	if l == python {
		if declared == "array" || declared == "tuple" {
			if nested, ok = types[details.object("items").text("type")]; !ok {
				return nil, "", "", Undecided
			}
		}
		return value, expected, nested, ""
	}
	text, ok := value.(string)
	if !ok {
		return nil, "", "", map[language]Fault{java: "type_error:java", javascript: "type_error:js"}[l]
	}
	inner := ""
	if declared == "Array" || declared == "ArrayList" || declared == "array" {
		inner = details.object("items").text("type")
		if nested, ok = types[inner]; !ok {
			return nil, "", "", Undecided
		}
	}
	if l == java {
		out, ok = javaValue(text, declared, inner)
	} else {
		out, ok = javascriptValue(text, declared, inner)
	}
	if !ok {
		return nil, "", "", Undecided
	}
	return out, expected, nested, ""
}

var (
	wholeNumber   = regexp.MustCompile(`^-?\d+\n?$`)
	longNumber    = regexp.MustCompile(`^-?\d+[lL]\n?$`)
	bigNumber     = regexp.MustCompile(`^-?\d+n\n?$`)
	doubleNumber  = regexp.MustCompile(`^-?\d+(\.\d+)?([eE][+-]?\d+)?\n?$`)
	floatNumber   = regexp.MustCompile(`^-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]\n?$`)
	decimalNumber = regexp.MustCompile(`^-?\d+(\.\d+)?\n?$`)
	pythonInteger = regexp.MustCompile(`^[+-]?\d+(_\d+)*$`)
	pythonFloat   = regexp.MustCompile(`^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)([eE][+-]?\d+(_\d+)*)?$`)
)

// pythonInt is Python's int(text), or nil if the text is not an integer.
func pythonInt(text string) any {
	text = strings.TrimSpace(text)
	if !pythonInteger.MatchString(text) {
		return nil
	}
	n, ok := new(big.Int).SetString(strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+"), 10)
	if !ok {
		return nil
	}
	return n
}

// fraction is Python's float(text), or nil if the text is not a number.
func fraction(text string) any {
	text = strings.TrimSpace(text)
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case "inf", "infinity":
		if strings.HasPrefix(text, "-") {
			return math.Inf(-1)
		}
		return math.Inf(1)
	case "nan":
		return math.NaN()
	}
	if !pythonFloat.MatchString(text) {
		return nil
	}
	f, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return f
}

// untypedValue returns a value without a declared type: a number, or the text itself.
func untypedValue(text string) any {
	if n := pythonInt(text); n != nil {
		return n
	}
	if f := fraction(text); f != nil {
		return f
	}
	return text
}

// withoutEnds returns a text without its first and last character, like Python's text[1:-1].
func withoutEnds(text string) string {
	runes := []rune(text)
	if len(runes) < 2 {
		return ""
	}
	return string(runes[1 : len(runes)-1])
}

func quoted(text, quote string) bool {
	return strings.HasPrefix(text, quote) && strings.HasSuffix(text, quote)
}
