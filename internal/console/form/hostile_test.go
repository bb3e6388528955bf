package form_test

import (
	"fmt"
	"strings"
)

// object returns the schema of an object with these members.
func object(members string) string { return `{"type":"object","properties":{` + members + `}}` }

// repeated joins n texts, each formatted with its number.
func repeated(n int, format, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
	}
	return strings.Join(all, separator)
}

// nested returns a schema with n nested objects.
func nested(n int) string {
	return strings.Repeat(`{"type":"object","properties":{"a":`, n) + `{"type":"string"}` + strings.Repeat(`}}`, n)
}

// hostile lists schemas of real servers, and schemas written to break a form.
var hostile = []string{
	// 1: roots.
	``, `{}`, `true`, `false`, `null`, `[]`, `"x"`, `{"type":"string"}`, `{"type":"array","items":{"type":"string"}}`, `{"type":["object","null"],"properties":{"a":{"type":"string"}}}`,
	`{"anyOf":[` + object(`"a":{"type":"string"}`) + `,` + object(`"b":{"type":"integer"}`) + `]}`,
	`{"type":"object","properties":{"kind":{"type":"string"}},"oneOf":[{"properties":{"kind":{"const":"a"},"x":{"type":"string"}},"required":["kind","x"]},{"properties":{"kind":{"const":"b"},"y":{"type":"integer"}},"required":["kind","y"]}]}`,
	`{"allOf":[` + object(`"a":{"type":"string"}`) + `,` + object(`"b":{"type":"boolean"}`) + `]}`,
	`{"$ref":"#/$defs/root","$defs":{"root":` + object(`"a":{"type":"string"}`) + `}}`,
	`{"properties":{"a":{"type":"string"}}}`, `{"type":"object"}`, `{"type":"object","required":["a"]}`, `{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","properties":[]}`, `{"type":"object","properties":null}`,
	// 21: recursion.
	`{"$ref":"#"}`, object(`"child":{"$ref":"#"}`), object(`"children":{"type":"array","items":{"$ref":"#"}}`), `{"allOf":[{"$ref":"#"}],"type":"object","properties":{"a":{"type":"string"}}}`, `{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`,
	`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
	`{"type":"object","properties":{"e":{"$ref":"#/$defs/e"}},"$defs":{"e":{"anyOf":[{"type":"number"},{"type":"object","properties":{"l":{"$ref":"#/$defs/e"},"r":{"$ref":"#/$defs/e"}},"required":["l","r"]}]}}}`,
	`{"anyOf":[{"allOf":[{"$ref":"#"},{"$ref":"#"}]},{"allOf":[{"$ref":"#"},{"$ref":"#"}]}],"oneOf":[{"$ref":"#"},{"$ref":"#"}]}`,
	// 29: size and depth.
	object(repeated(1000, `"p#":{"type":"string"}`, ",")), object(repeated(150, `"p#":{"type":"string"}`, ",")), object(repeated(149, `"p#":{"type":"string"}`, ",")), nested(5), nested(6), nested(500), nested(10_000),
	object(`"a":{"enum":[` + repeated(5000, `"v#"`, ",") + `]}`), object(`"a":{"anyOf":[` + repeated(500, `{"type":"object","properties":{"p#":{"type":"string"}}}`, ",") + `]}`),
	object(`"a":{"type":"string","description":"` + strings.Repeat("x", 100_000) + `"}`), object(`"a":{"type":"string","description":"` + strings.Repeat("x", 300_000) + `"}`),
	object(`"a":{"default":[` + repeated(1000, "#", ",") + `],"type":"array","items":{"type":"integer"}}`),
	// 41: names.
	object(`"":{"type":"string"}`), object(`"a.b":{"type":"string"},"a":` + object(`"b":{"type":"string"}`)), object(`"<script>alert(1)</script>":{"type":"string"}`), object(`"a\r\nb":{"type":"string"},"a\u0000b":{"type":"string"}`),
	object(`"\u202egnp":{"type":"string"},"__proto__":{"type":"string"},"constructor":{"type":"number"}`), object(`"token":{"type":"string"},"do":{"type":"string"},"arguments":{"type":"string"},"f.a.0":{"type":"string"}`),
	object(`"a":{"type":"string"},"a":{"type":"integer"}`), object(`"\ud800":{"type":"string"}`),
	// 49: values.
	object(`"a":{"enum":[null,1,1.0,"1",true,{"x":[1]},[],""]}`), object(`"a":{"const":{"deep":[null]}}`), `{"type":"object","properties":{"a":{"const":"only"}},"required":["a"]}`, object(`"a":{"enum":[]}`),
	object(`"n":{"type":"integer","default":123456789012345678901234567890},"m":{"type":"number","default":1e400},"k":{"type":"number","default":-0.0}`),
	object(`"a":{"type":"string","default":"line 1\nline 2\t\u2028\""}`), object(`"a":{"type":"string","default":5},"b":{"type":"integer","default":"x"},"c":{"type":"boolean","default":"yes"},"d":{"type":"array","default":{},"items":{}}`),
	object(`"a":{"type":"object","default":{"x":"from outside"},"properties":{"x":{"type":"string","default":"inside"},"y":{"type":"string"}}}`),
	object(`"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}`), object(`"a":{"type":["string","number","null"],"default":7}`), object(`"a":{"type":["array","object"],"items":{"type":"string"},"properties":{"x":{"type":"string"}}}`), object(`"a":{"nullable":true,"type":"boolean","default":null}`),
	// 61: invalid patterns, keywords and types.
	object(`"a":{"type":"string","pattern":"^(a+)+$"},"b":{"type":"string","pattern":"(((("},"c":{"type":"string","format":"date-time","minLength":1e3}`), object(`"a":{"type":"whatever"},"b":{"type":7},"c":{"type":[]},"d":true,"e":false,"f":null,"g":"x"`),
	object(`"a":{"$ref":"https://evil.example/schema"},"b":{"$ref":"#/nowhere"},"c":{"$ref":"#/properties/a"},"d":{"$ref":"#/%"},"e":{"$ref":7},"f":{"$ref":"#anchor"}`), object(`"a":{"type":"array","prefixItems":[{"type":"string"}],"items":false},"b":{"type":"array","items":[{"type":"string"}]},"c":{"type":"array"},"d":{"type":"array","items":true}`),
	object(`"a":{"not":{}},"b":{"if":{},"then":{"type":"string"}},"c":{"patternProperties":{"^x":{"type":"string"}}}`), object(`"a":{"allOf":[{"type":"string"},{"type":"integer"}]},"b":{"anyOf":[]},"c":{"oneOf":{}},"d":{"anyOf":[{"const":1},{"const":2,"title":"two"}]}`),
	`{"type":"object","properties":{"a":{"type":"string"}`, `{"type":"object",}`, "\xff{}", `{"type":"object"} {}`, "  {\"type\" : \"object\" , \"properties\" : {\"a\" : {\"type\":\"string\"}}}  ",
	// The last one: unbounded work where only chains of references were limited.
	`{"type":"object","allOf":[` + strings.Repeat(`{"$ref":"#"},`, 50) + `true]}`,
}
