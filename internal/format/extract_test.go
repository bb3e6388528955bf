package format

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callyard/callyard/pkg/schema"
)

// known is a [Lookup] that knows files__read {path, count} in the spellings of a directory.
func known(name string) ([]byte, bool) {
	d := directoryOf([]*schema.Tool{{Server: "files", Name: "read"}, {Server: "web", Name: "get"}})
	if _, err := resolve(d, name); err != nil {
		return nil, false
	}
	return []byte(`{"type":"object","properties":{"path":{"type":"string"},"count":{"type":"integer"},"tags":{"type":"array"}}}`), true
}

func TestToolCallsAreFoundInText(t *testing.T) {
	want := []simple{{"", "files__read", `{"path":"/a","count":2}`}}
	for name, c := range map[string]struct {
		text string
		want []simple
	}{
		"a tag":                     {"I will look.\n<tool_call>\n{\"name\":\"files__read\",\"arguments\":{\"path\":\"/a\",\"count\":2}}\n</tool_call>\nSo.", want},
		"two in one tag":            {`<tool_call>{"name":"files__read","arguments":{"path":"/a","count":2}}` + "\n" + `{"name":"web__get","arguments":{}}</tool_call>`, append(want[:1:1], simple{"", "web__get", `{}`})},
		"two tags":                  {`<tool_call>{"name":"files__read","arguments":{"path":"/a","count":2}}</tool_call> and <tool_call>{"name":"web__get","arguments":{}}</tool_call>`, append(want[:1:1], simple{"", "web__get", `{}`})},
		"a list in a tag":           {`<tool_calls>[{"name":"files__read","arguments":{"path":"/a","count":2}}]</tool_calls>`, want},
		"a fence in a tag":          {"<tool_call>\n```json\n{\"name\":\"files__read\",\"arguments\":{\"path\":\"/a\",\"count\":2}}\n```\n</tool_call>", want},
		"a brace too few":           {`<tool_call>{"name":"files__read","arguments":{"path":"/a","count":2}</tool_call>`, want},
		"a brace too many":          {`<tool_call>{"name":"files__read","arguments":{"path":"/a","count":2}}}</tool_call>`, want},
		"a tag that does not close": {`<tool_call>{"name":"files__read","arguments":{"path":"/a","count":2}} that is all`, want},
		"an unknown name in a tag":  {`<tool_call>{"name":"nobody","arguments":{}}</tool_call>`, []simple{{"", "nobody", `{}`}}},
		"a fence":                   {"Thus:\n```json\n{\"name\": \"files__read\", \"arguments\": {\"path\":\"/a\",\"count\":2}}\n```\n", want},
		"a fence of Python":         {"```tool_code\nfiles__read(path=\"/a\", count=2)\n```", want},
		"bare":                      {`Calling {"name":"files__read","arguments":{"path":"/a","count":2}} now`, want},
		"bare, as a list":           {`[{"name":"files__read","parameters":{"path":"/a","count":2}}]`, want},
		"OpenAI's form":             {`{"tool_calls":[{"id":"c1","type":"function","function":{"name":"files__read","arguments":"{\"path\":\"/a\",\"count\":2}"}}]}`, []simple{{"", "files__read", `{"path":"/a","count":2}`}}},
		"MCP Bridge's form":         {`{"tool_call":{"server_id":"files","tool_name":"read","parameters":{"path":"/a","count":2}},"response":null}`, want},
		"its form for no call":      {`{"tool_call":{"server_id":null,"tool_name":null,"parameters":null},"response":"Hello."}`, nil},
		"its form, unknown":         {`Well: {"tool_call":{"server_id":"web","tool_name":"read","parameters":{}}}`, []simple{{"", "web__read", `{}`}}},
		"a server next to the name": {`{"server":"files","tool":"read","arguments":{"path":"/a","count":2}}`, want},
		"another server's tool":     {`<tool_call>{"server_id":"web","name":"read","arguments":{}}</tool_call>`, []simple{{"", "web__read", `{}`}}},
		"answers of tools":          {`{"tool_responses":[{"name":"files__read","arguments":{"path":"/a"},"content":"x"}]} {"tool_response":{"name":"files__read","parameters":{},"result":1}}`, nil},
		"action and input":          {`{"thought":"…","action":"files.read","action_input":{"path":"/a","count":2}}`, []simple{{"", "files.read", `{"path":"/a","count":2}`}}},
		"a tool as the member":      {`<tool_call>{"files__read":{"path":"/a","count":2}}</tool_call>`, want},
		"other separators":          {`<tool_call>{"name":"files/read","arguments":{"path":"/a","count":2}}</tool_call>`, []simple{{"", "files/read", `{"path":"/a","count":2}`}}},
		"a namespace":               {`<tool_call>{"name":"functions.files__read","arguments":{"path":"/a","count":2}}</tool_call>`, []simple{{"", "functions.files__read", `{"path":"/a","count":2}`}}},
		"single quotes":             {`<tool_call>{'name': 'files__read', 'arguments': {'path': '/a', 'count': 2,},}</tool_call>`, want},
		"no quotes at names":        {`<tool_call>{name: "files__read", arguments: {path: "/a", count: 2}}</tool_call>`, want},
		"comments":                  {"<tool_call>{\"name\":\"files__read\", // which\n\"arguments\":{/* where */\"path\":\"/a\",\"count\":2}}</tool_call>", want},
		"Python's words":            {`<tool_call>{"name":"files__read","arguments":{"path":"/a","tags":[True,False,None]}}</tool_call>`, []simple{{"", "files__read", `{"path":"/a","tags":[true,false,null]}`}}},
		"a line break in a string":  {"<tool_call>{\"name\":\"files__read\",\"arguments\":{\"path\":\"a\nb\"}}</tool_call>", []simple{{"", "files__read", `{"path":"a\nb"}`}}},
		"a lonely backslash":        {`<tool_call>{'name':'files__read','arguments':{'path':'C:\dir\w'}}</tool_call>`, []simple{{"", "files__read", `{"path":"C:\\dir\\w"}`}}},
		"numbers of all kinds":      {`<tool_call>{name:"files__read",arguments:{a:9007199254740993,b:.5,c:+1,d:1_000,e:5.}}</tool_call>`, []simple{{"", "files__read", `{"a":9007199254740993,"b":0.5,"c":1,"d":1000,"e":5}`}}},
		"Mistral":                   {`[TOOL_CALLS] [{"name": "files__read", "arguments": {"path":"/a","count":2}}]`, want},
		"Llama":                     {`<|python_tag|>{"name": "files__read", "parameters": {"path":"/a","count":2}}<|eom_id|>`, want},
		"Llama's calls":             {`<|python_tag|>files__read(path="/a", count=2)`, want},
		"a function tag":            {`<function=files__read>{"path":"/a","count":2}</function>`, want},
		"parameters":                {"<tool_call>\n<function=files__read>\n<parameter=path>\n/a\n</parameter>\n<parameter=count>\n2\n</parameter>\n</function>\n</tool_call>", want},
		"a number that is text":     {"<function=files__read><parameter=path>42</parameter></function>", []simple{{"", "files__read", `{"path":"42"}`}}},
		"an invoke tag":             {`<function_calls><invoke name="files__read"><parameter name="path">/a</parameter><parameter name="count">2</parameter></invoke></function_calls>`, want},
		"exact bytes":               {`<tool_call>{"name":"files__read","arguments":` + exact + `}</tool_call>`, []simple{{"", "files__read", exact}}},
		"text":                      {"There is nothing here, {not even} this [1] `code`.", nil},
		"JSON that is no call":      {"```json\n{\"name\":\"Ada\",\"arguments\":[1]}\n```\n{\"name\":\"files__read\"} {\"name\":\"nobody\",\"arguments\":{}}", nil},
		"a call inside of data":     {`{"example":{"name":"files__read","arguments":{"path":"/etc"}}}`, nil},
		"values without names":      {"```python\nfiles__read(\"/a\")\n```", nil},
		"nothing":                   {"", nil},
	} {
		found := Extract(c.text, known)
		var got []simple
		for _, f := range found {
			if f.Err != nil {
				t.Errorf("%s: %v", name, f.Err)
			}
			if f.Start < 0 || f.End > len(c.text) || f.Start >= f.End {
				t.Errorf("%s: at %d to %d", name, f.Start, f.End)
			}
			got = append(got, simple{"", f.Name, string(f.Arguments)})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestTruncatedCallInTextIsNotRun(t *testing.T) {
	for _, text := range []string{
		`<tool_call>{"name":"files__read","arguments":{"path":"/a","cou`,
		`<tool_call>{"name":"files__read","arguments":{"path":"/a"`,
		`<tool_call>{"name":"files__read","arguments":{"path":"/a`,
		`<tool_call>{"name":"files__read"`,
		`<function=files__read><parameter=path>/a`,
		`{"name":"files__read","arguments":{"path":"/a"`,
	} {
		found := Extract(text, known)
		if len(found) != 1 || found[0].Err == nil || !strings.Contains(found[0].Err.Detail, "truncated") {
			t.Errorf("%s: %+v", text, found)
		}
	}
}

func TestARepairIsReported(t *testing.T) {
	found := Extract(`<tool_call>{"name":"web__get","arguments":{}}</tool_call><tool_call>{'name':'web__get','arguments':{}}</tool_call>`, known)
	if len(found) != 2 || found[0].Repaired || !found[1].Repaired {
		t.Errorf("%+v", found)
	}
}

func TestHostileTextTakesBoundedTime(t *testing.T) {
	for name, piece := range map[string]string{
		"braces": "{", "brackets": "[", "tags": "<tool_call>", "fences": "```\n", "fences in one line": "```", "names": "{a:", "quotes": `{"a":"`, "comments": "{//", "comment ends": "{/*", "functions": "<function=x>",
		"calls": "a(b=", "lists": "[{", "tags with braces": "<tool_call>{", "near": `{'a':{'b':[`, "invokes": `<invoke name="x"><parameter name="y">`,
		"mistral": "[TOOL_CALLS]a", "mistral's arguments": "[TOOL_CALLS]a[ARGS]{", "glm": "<tool_call>a<arg_key>", "kimi": "<|tool_call_begin|>a<|tool_call_argument_begin|>{", "kimi's heads": "<|tool_call_begin|>",
		"gpt-oss": "<|channel|>to=functions.a<|message|>{", "gpt-oss's heads": "<|start|>", "functiongemma": "<start_function_call>call:a{b:[", "functiongemma's text": "<start_function_call>call:a{b:<escape>", "python": "[a(b=[",
	} {
		text := strings.Repeat(piece, maxText/4/len(piece))
		began := time.Now()
		Extract(text, known)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: %s", name, took)
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, seed := range []string{
		`<tool_call>{"name":"files__read","arguments":{"path":"/a"}}</tool_call>`, "```json\n{'name':'files__read','arguments':{}}\n```", `[TOOL_CALLS] [{"name":"web__get","arguments":{}}]`,
		`<function=web__get><parameter=a>1</parameter></function>`, `files__read(path='x', n=[1,{'a':None}])`, `{"a":"\ud83d\ude00\x41"}`, "<tool_call>\n```\n", `<invoke name="web__get"></invoke>`,
	} {
		f.Add(seed)
	}
	for _, c := range modelTexts(f) {
		f.Add(c[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range Extract(text, known) {
			if !json.Valid(found.Arguments) {
				t.Fatalf("%q has %q", text, found.Arguments)
			}
			if found.Start < 0 || found.End > len(text) || found.Start > found.End {
				t.Fatalf("%q: at %d to %d", text, found.Start, found.End)
			}
			if found.Err == nil && found.Name == "" {
				t.Fatalf("%q: a call without a name", text)
			}
		}
	})
}
