package console

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/kit/plainjson"
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
		{"curl", "curl", "curl -sS --fail-with-body " + shell(to) + " \\\n" + key + "  --json " + shell(arguments)},
		{"cli", "CLI", "callyard --url " + shell(frontDoor) + " call " + shellArguments(server, tool, arguments)},
		{"python", "Python", "import json\nimport os\n\nimport callyard\n\nwith callyard.connect(" + literal(frontDoor) + keyPython + ") as client:\n    arguments = json.loads(" + literal(one) + ")\n    print(callyard.text(client.call(" + literal(server) + ", " + literal(tool) + ", arguments)))"},
		{"typescript", "TypeScript", "import { createClient, textOf } from \"@callyard/client\";\n\nconst client = createClient(" + literal(frontDoor) + keyTS + ");\nconst result = await client.call(" + literal(server) + ", " + literal(tool) + ", JSON.parse(" + literal(one) + "));\nconsole.log(textOf(result));"},
	}
}

// shell quotes a word for a POSIX shell if it needs quotes.
func shell(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%") == "" && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shellArguments quotes the arguments of a command. A server chooses the names of its tools, and the
// command must not take one for a flag such as --url, with which it would send the key elsewhere.
func shellArguments(words ...string) string {
	quoted, mark := make([]string, len(words)), ""
	for i, w := range words {
		if strings.HasPrefix(w, "-") {
			mark = "-- "
		}
		quoted[i] = shell(w)
	}
	return mark + strings.Join(quoted, " ")
}

// literal returns a string literal for Python and JavaScript. A JSON string is valid in both.
func literal(s string) string {
	b, err := plainjson.Marshal(s)
	if err != nil {
		return `""` // a string always encodes
	}
	return string(b)
}
