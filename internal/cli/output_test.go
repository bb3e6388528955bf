package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

func TestTheOutputFormatIsSelectedByFlags(t *testing.T) {
	plainEnvironment(t)
	body := `{"servers":[{"id":"demo","initialization_state":"initialized","transport":"stdio"}]}`
	d := openDoor(t, map[string]answer{"GET /servers": jsonAnswer(body)})
	for args, want := range map[string]string{
		"":                     "SERVER  STATE",
		"--output table":       "SERVER  STATE",
		"-o json":              body + "\n",
		"--json":               body + "\n",
		"--json=false":         "SERVER  STATE",
		"--json -o json":       body + "\n",
		"-o yaml":              "servers:\n  - id: demo\n    initialization_state: initialized\n    transport: stdio\n",
		"--output=yaml -oyaml": "servers:\n",
	} {
		stdout, stderr, code := typed(t, "", append([]string{"servers", "--url", d.URL}, strings.Fields(args)...)...)
		if code != exitOK || !strings.HasPrefix(stdout, want) {
			t.Errorf("%q: code %d, %q, %s", args, code, stdout, stderr)
		}
	}
	for args, want := range map[string]string{
		"-o xml":           "json, yaml or table",
		"-o yml":           "Did you mean yaml?",
		"--json -o yaml":   "is already json",
		"-o yaml --json":   "is already yaml",
		"--json=sometimes": "does not accept a value",
	} {
		stdout, stderr, code := typed(t, "", append([]string{"servers", "--url", d.URL}, strings.Fields(args)...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: code %d, %q, %s", args, code, stdout, stderr)
		}
	}
}

func TestRefusalIsYAMLOnRequest(t *testing.T) {
	plainEnvironment(t)
	d := openDoor(t, nil)
	stdout, stderr, code := typed(t, "", "workers", "-o", "yaml", "--url", d.URL)
	if code != exitRefused || !strings.HasPrefix(stdout, "title: Not found\nstatus: 404\ndetail: There is no such path.\n") || !strings.Contains(stderr, "There is no such path.") {
		t.Errorf("code %d, %q, %s", code, stdout, stderr)
	}
}

const yamlSample = `{"id":"call_1","n":12345678901234567890,"f":1.50,"e":-2.5e10,"t":true,"none":null,"no":"no","number":"12","empty":"","object":{},"array":[],
"nested":{"list":[1,"two",{"a":1,"b":[[1,2],[]]},[{"c":"d"}]]},"text":"first\n  second\n\nlast","ends":"a\nb\n","blanks":"a\n\n","indented":" a\nb","url":"http://127.0.0.1:8080/mcp",
"colon":"a: b","hash":"a #b","escape":"\u001b[31m","dash":"- x","tilde":"~","quote":"say \"hi\" it's","wide":"漢字 é","date":"2026-01-02","a b":"key: with blank","yes":1,"reverse":"\u202e\nx","tab":"a\tb\nc"}`

func TestYAMLHasTheDataOfTheJSON(t *testing.T) {
	text, err := yamlOf([]byte(yamlSample))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "output-yaml", string(text))
	for _, document := range []string{yamlSample, `"text"`, `"no"`, `12`, `[]`, `{}`, `[[],{}]`, `null`, `"a\nb"`, `["a\nb\n","c"]`} {
		sameData(t, document)
	}
}

// sameData checks with a YAML parser that the YAML of a JSON document has the same data.
func sameData(t *testing.T, document string) {
	t.Helper()
	text, err := yamlOf([]byte(document))
	if err != nil {
		t.Errorf("%s: %v", document, err)
		return
	}
	var got, want any
	if err := json.Unmarshal(yamlJSON(t, text), &got); err != nil {
		t.Errorf("%v\n%s", err, text)
		return
	}
	if err := json.Unmarshal([]byte(document), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nis\n%s\nwhich is read as %v", document, text, got)
	}
}

func TestInvalidOrDeepJSONIsNotConvertedToYAML(t *testing.T) {
	for _, document := range []string{"", "{", `{"a":`, strings.Repeat("[", yamlDepth+2) + strings.Repeat("]", yamlDepth+2)} {
		if text, err := yamlOf([]byte(document)); err == nil {
			t.Errorf("%.20q became %.20q", document, text)
		}
	}
}

// yamlJSON reads YAML with a parser and returns its data as JSON.
func yamlJSON(t *testing.T, text []byte) []byte {
	t.Helper()
	root, ok := yamldoc.Parse(text, yamldoc.Options{MaxDepth: 50, Report: func(at yamldoc.Position, format string, args ...any) {
		t.Errorf("%v: %s\n%s", at, fmt.Sprintf(format, args...), text)
	}})
	if !ok || root == nil {
		t.Fatalf("no YAML:\n%s", text)
	}
	var write func(n *yamldoc.Node) string
	write = func(n *yamldoc.Node) string {
		var parts []string
		switch n.Kind {
		case yamldoc.Null:
			return "null"
		case yamldoc.Bool, yamldoc.Number:
			return n.Text
		case yamldoc.List:
			for _, item := range n.Items {
				parts = append(parts, write(item))
			}
			return "[" + strings.Join(parts, ",") + "]"
		case yamldoc.Map:
			for _, m := range n.Members {
				parts = append(parts, string(marshal(m.Key))+":"+write(m.Value))
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		return string(marshal(n.Text))
	}
	return []byte(write(root))
}
