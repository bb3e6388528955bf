package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestPairsBecomeOneObjectInTheirOrder(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"numbers":             {[]string{"z=2", "a=-40", "n=9007199254740993", "f=1.50"}, `{"z":2,"a":-40,"n":9007199254740993,"f":1.50}`},
		"words of JSON":       {[]string{"a=true", "b=false", "c=null"}, `{"a":true,"b":false,"c":null}`},
		"objects and lists":   {[]string{`o={"k": 1}`, "l=[1, 2]"}, `{"o":{"k": 1},"l":[1, 2]}`},
		"a quoted string":     {[]string{`s="2"`}, `{"s":"2"}`},
		"strings":             {[]string{"s=hello world", "t=01", "u=True", "v= 2", "w="}, `{"s":"hello world","t":"01","u":"True","v":" 2","w":""}`},
		"an equals sign":      {[]string{"q=a=b"}, `{"q":"a=b"}`},
		"what HTML escapes":   {[]string{"h=<a&b>", "<k>=1"}, `{"h":"<a&b>","<k>":1}`},
		"broken JSON":         {[]string{`o={"k":`}, `{"o":"{\"k\":"}`},
		"one pair":            {[]string{"message=hi"}, `{"message":"hi"}`},
		"quotes in a key":     {[]string{`a"b=1`}, `{"a\"b":1}`},
		"a file name is text": {[]string{"path=@notes.txt"}, `{"path":"@notes.txt"}`},
	} {
		got, err := callArguments(c.args, strings.NewReader(""))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestArgumentsThatAreNoObjectAreAUsageError(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"a list":               {"[1]"},
		"a number":             {"7"},
		"a string":             {`"x"`},
		"broken JSON":          {"{a:2}"},
		"two objects":          {"{}", "{}"},
		"a word":               {"hello"},
		"no key":               {"=2"},
		"a word among pairs":   {"a=2", "hello"},
		"a key given twice":    {"a=2", "a=3"},
		"not UTF-8":            {"a=\xff"},
		"an empty file":        {"@" + empty},
		"a missing file":       {"@" + empty + ".not"},
		"nothing on stdin":     {"-"},
		"an object and a pair": {`{"a":1}`, "b=2"},
		"nothing at all":       {""},
	} {
		_, err := callArguments(args, strings.NewReader(""))
		var coded *exitError
		if !errors.As(err, &coded) || coded.code != exitUsage || coded.Error() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := callArguments([]string{"-"}, iotest.ErrReader(errors.New("no terminal"))); exitCode(err) != exitUsage {
		t.Errorf("a broken stdin: %v", err)
	}
}

func FuzzPairs(f *testing.F) {
	f.Add("a=2", "b=40")
	f.Add("a=\"", "b={\"c\":[")
	f.Add("é=\x00", "=")
	f.Fuzz(func(t *testing.T, one, two string) {
		body, err := pairs([]string{one, two})
		if err != nil {
			return
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(body, &members); err != nil || len(members) != 2 {
			t.Fatalf("%q %q became %s: %v", one, two, body, err)
		}
		for _, arg := range []string{one, two} {
			key, value, _ := strings.Cut(arg, "=")
			raw := members[key]
			var text string
			if !bytes.Equal(raw, []byte(value)) && (json.Unmarshal(raw, &text) != nil || text != value) {
				t.Fatalf("%q became %s", arg, raw)
			}
		}
	})
}

func TestByteOrderMarkOfAFileIsSkipped(t *testing.T) {
	const mark = "\xef\xbb\xbf"
	path := filepath.Join(t.TempDir(), "file")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(mark+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"a":1}`)
	if got, err := callArguments([]string{"@" + path}, strings.NewReader("")); err != nil || string(got) != `{"a":1}` {
		t.Errorf("a file of arguments: %q, %v", got, err)
	}
	if got, err := callArguments([]string{"-"}, strings.NewReader(mark+`{"a":1}`)); err != nil || string(got) != `{"a":1}` {
		t.Errorf("standard input: %q, %v", got, err)
	}
	write("demo/echo\n")
	if got, err := requiredTools(path, nil); err != nil || len(got) != 1 || got[0] != "demo/echo" {
		t.Errorf("required tools: %q, %v", got, err)
	}
	write("cyk_secret\n")
	t.Setenv("CALLYARD_KEY_FILE", path)
	if got, err := apiKey(""); err != nil || got != "cyk_secret" {
		t.Errorf("a file with a key: %q, %v", got, err)
	}
}
