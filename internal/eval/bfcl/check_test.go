package bfcl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const orderFunction = `[{"name":"shop.order","description":"","parameters":{"type":"dict","required":["item"],"properties":{
	"item":{"type":"string"},"price":{"type":"float"},"count":{"type":"integer"},"gift":{"type":"boolean"},
	"tags":{"type":"array","items":{"type":"string"}},"place":{"type":"tuple","items":{"type":"float"}},
	"to":{"type":"dict"},"lines":{"type":"array","items":{"type":"dict"}}}}}]`

const orderAnswer = `[{"shop.order":{"item":["New York, NY","NYC"],"price":[5.0,""],"count":["",3],"gift":["",true],"tags":["",["a b","C"]],
	"place":["",[1.5,2.0]],"to":["",{"name":["Ann","Anna"],"zip":["",123]}],"lines":["",[{"id":[1]},{"id":[2]}]]}}]`

func TestSingleCallRules(t *testing.T) {
	for _, c := range []struct {
		arguments string
		want      Fault
	}{
		{`{"item":"NYC"}`, ""},
		{`{"item":"new-york_ny."}`, ""},
		{`{"item":"New York","price":5.0}`, "value_error:string"},
		{`{"price":5.0}`, "simple_function_checker:missing_required"},
		{`{"item":"NYC","colour":"red"}`, "simple_function_checker:unexpected_param"},
		{`{"item":"NYC","price":5}`, ""},
		{`{"item":"NYC","price":"5"}`, "type_error:simple"},
		{`{"item":"NYC","count":3.0}`, "type_error:simple"},
		{`{"item":"NYC","count":true}`, "type_error:simple"},
		{`{"item":"NYC","count":4}`, "value_error:others"},
		{`{"item":"NYC","gift":1}`, "type_error:simple"},
		{`{"item":"NYC","tags":["A-B","c"]}`, ""},
		{`{"item":"NYC","tags":["c","a b"]}`, "value_error:list/tuple"},
		{`{"item":"NYC","tags":[1]}`, "value_error:list/tuple"}, // "" among the answers accepts any items
		{`{"item":"NYC","place":[1.5,2.0]}`, ""},
		{`{"item":"NYC","to":{"name":"anna"}}`, ""},
		{`{"item":"NYC","to":{"name":"Ann","zip":123}}`, ""},
		{`{"item":"NYC","to":{"zip":123}}`, "value_error:dict_key"},
		{`{"item":"NYC","to":{"name":"Bob"}}`, "value_error:dict_value"},
		{`{"item":"NYC","to":{"name":"Ann","x":1}}`, "value_error:dict_key"},
		{`{"item":"NYC","lines":[{"id":1},{"id":2}]}`, ""},
		{`{"item":"NYC","lines":[{"id":2},{"id":1}]}`, "value_error:dict_value"},
		{`{"item":"NYC","lines":[{"id":1}]}`, "value_error:list_dict_count"},
		{`{"item":"NYC","lines":[1,2]}`, Undecided},
		{`[]`, Unreadable}, {`{`, Unreadable}, {``, Unreadable},
	} {
		got, err := Check("simple_python", json.RawMessage(orderFunction), json.RawMessage(orderAnswer), []Call{{"shop.order", json.RawMessage(c.arguments)}}, Options{})
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.arguments, got, err, c.want)
		}
	}
}

// The time grew with the square of the white space: it would take hours.
func TestWhiteSpaceInAJavaScriptObjectIsSkipped(t *testing.T) {
	functions := `[{"name":"f","parameters":{"properties":{"m":{"type":"dict"}}}}]`
	for _, between := range []string{"", " ", strings.Repeat(" ", 1<<20)} {
		text, err := json.Marshal(map[string]string{"m": "{a: 1," + between + "b: 2," + between + "}"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Check("simple_javascript", json.RawMessage(functions), json.RawMessage(`[{"f":{"m":[{"a":[1],"b":["2,"]}]}}]`), []Call{{"f", text}}, Options{})
		if err != nil || got != "" {
			t.Errorf("%d spaces: %q, %v", len(between), got, err)
		}
	}
}

func TestNamesWithUnderscores(t *testing.T) {
	for name, want := range map[string]map[bool]Fault{
		"shop.order": {false: "", true: "simple_function_checker:wrong_func_name"},
		"shop_order": {false: "simple_function_checker:wrong_func_name", true: ""},
	} {
		for underscores, fault := range want {
			got, err := Check("simple_python", json.RawMessage(orderFunction), json.RawMessage(orderAnswer), []Call{{name, json.RawMessage(`{"item":"NYC"}`)}}, Options{UnderscoresForDots: underscores})
			if err != nil || got != fault {
				t.Errorf("%s: %q, %v, want %q", name, got, err, fault)
			}
		}
	}
}

func TestParallelCallsTakeTheFirstAnswerThatFits(t *testing.T) {
	functions := json.RawMessage(`[{"name":"f","parameters":{"type":"dict","required":["x"],"properties":{"x":{"type":"integer"}}}}]`)
	answers := json.RawMessage(`[{"f":{"x":[1,2]}},{"f":{"x":[1]}}]`)
	for text, want := range map[string]Fault{
		"2 1": "", "1 1": "", "1 2": "parallel_function_checker_no_order:cannot_find_match", // greedy: 1 goes to the first answer
		"1": "parallel_function_checker_no_order:wrong_count", "3 1": "parallel_function_checker_no_order:cannot_find_match",
	} {
		var calls []Call
		for _, digit := range text {
			if digit != ' ' {
				calls = append(calls, Call{"f", json.RawMessage(fmt.Sprintf(`{"x":%c}`, digit))})
			}
		}
		if got, err := Check("parallel", functions, answers, calls, Options{}); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestRelevance(t *testing.T) {
	one := []Call{{"f", json.RawMessage(`{}`)}}
	for category, want := range map[string][2]Fault{"live_irrelevance": {"", "irrelevance_error:decoder_success"}, "live_relevance": {"relevance_error:decoder_failed", ""}} {
		for i, calls := range [][]Call{nil, one} {
			if got, err := Check(category, nil, nil, calls, Options{}); err != nil || got != want[i] {
				t.Errorf("%s, %d calls: %q, %v", category, i, got, err)
			}
		}
	}
}

func TestFaultyDefinitionsAreErrors(t *testing.T) {
	for _, c := range [][2]string{{"", "[]"}, {"[]", "{}"}, {"[1]", "[]"}, {"[]", "[null]"}} {
		if _, err := Check("parallel", json.RawMessage(c[0]), json.RawMessage(c[1]), nil, Options{}); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
}

func FuzzAnyAnswerHasAVerdict(f *testing.F) {
	f.Add("simple_python", orderFunction, orderAnswer, "shop.order", `{"item":"NYC","to":{"name":"anna"}}`)
	f.Add("simple_java", `[{"name":"f","parameters":{"properties":{"m":{"type":"HashMap"},"l":{"type":"ArrayList","items":{"type":"long"}}}}}]`,
		`[{"f":{"m":[{"a":[1]}],"l":[[1]]}}]`, "f", `{"m":"new HashMap<String, Object>() {{ put(\"a\", 1); }}","l":"new ArrayList<Long>() {{ add(1L); }}"}`)
	f.Add("simple_javascript", `[{"name":"f","parameters":{"properties":{"m":{"type":"dict"},"l":{"type":"array","items":{"type":"array"}}}}}]`,
		`[{"f":{"m":[{"a":[1]}],"l":[[[1],[2]]]}}]`, "f", `{"m":"{a: 1, b: [2, 3], c: {d: 4}","l":"[[1],[2]]"}`)
	f.Add("parallel_multiple", orderFunction, orderAnswer, "x", `{}`)
	f.Fuzz(func(t *testing.T, category, functions, answers, name, arguments string) {
		if len(functions)+len(answers)+len(arguments) > 1<<16 {
			return
		}
		calls := []Call{{name, json.RawMessage(arguments)}}
		one, err := Check(category, json.RawMessage(functions), json.RawMessage(answers), calls, Options{})
		two, again := Check(category, json.RawMessage(functions), json.RawMessage(answers), calls, Options{})
		if one != two || (err == nil) != (again == nil) {
			t.Errorf("%q, %v; then %q, %v", one, err, two, again)
		}
	})
}
