package console

import (
	"bytes"
	"encoding/json"
	"net/url"

	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/kit/shellwords"
)

// show adds the derived fields: the call as commands and programs.
func (t *tryView) show(frontDoor, server, tool string, keyed bool) {
	t.Copies = copiesOf(frontDoor, server, tool, t.Arguments, keyed)
}

// copiesOf returns a call as commands and programs. The arguments are the same, byte for byte if
// the language preserves them.
func copiesOf(frontDoor, server, tool, arguments string, keyed bool) []copyText {
	key, keyTS, keyPython := "", "", ""
	if keyed {
		key = "  -H \"Authorization: Bearer $CALLYARD_KEY\" \\\n"
		keyTS, keyPython = ", { key: process.env.CALLYARD_KEY }", `, os.environ["CALLYARD_KEY"]`
	}
	to := frontDoor + "/servers/" + url.PathEscape(server) + "/tools/" + url.PathEscape(tool)
	one := arguments
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(arguments)) == nil {
		one = compact.String()
	}
	return []copyText{
		{"curl", "curl", "curl -sS --fail-with-body " + shellwords.Quote(to) + " \\\n" + key + "  --json " + shellwords.Quote(arguments)},
		{"cli", "CLI", "callyard --url " + shellwords.Quote(frontDoor) + " call " + shellwords.Arguments(server, tool, arguments)},
		{"python", "Python", "import json\nimport os\n\nimport callyard\n\nwith callyard.connect(" + literal(frontDoor) + keyPython + ") as client:\n    arguments = json.loads(" + literal(one) + ")\n    print(callyard.text(client.call(" + literal(server) + ", " + literal(tool) + ", arguments)))"},
		{"typescript", "TypeScript", "import { createClient, textOf } from \"@callyard/client\";\n\nconst client = createClient(" + literal(frontDoor) + keyTS + ");\nconst result = await client.call(" + literal(server) + ", " + literal(tool) + ", JSON.parse(" + literal(one) + "));\nconsole.log(textOf(result));"},
	}
}

// literal returns a string literal for Python and JavaScript. A JSON string is valid in both.
func literal(s string) string {
	b, err := plainjson.Marshal(s)
	if err != nil {
		return `""` // a string always encodes
	}
	return string(b)
}
