package risk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// verdict evaluates a condition over arguments and returns "yes", "no", or the reason why it failed.
func verdict(t testing.TB, when, arguments string) string {
	t.Helper()
	env, err := newEnv()
	if err != nil {
		t.Fatal(err)
	}
	c, issues := compile(env, when)
	if issues != nil {
		t.Fatalf("%s: %v", when, issues)
	}
	in := &Input{Server: "db", Tool: "query", Arguments: []byte(arguments), Principal: schema.Principal{Name: "ci", Groups: []string{"dev", "ops"}}}
	holds, why := c.eval(&facts{in: in})
	switch {
	case why != "":
		return why
	case holds:
		return "yes"
	}
	return "no"
}

func TestConditionsEvaluateTheCall(t *testing.T) {
	for _, c := range []struct{ when, arguments, want string }{
		{`args.table == "prod"`, `{"table":"prod"}`, "yes"},
		{`args.table.startsWith("prod")`, `{"table":"production"}`, "yes"},
		{`args["a b"].c[1] > 2`, `{"a b":{"c":[1,3]}}`, "yes"},
		{`args.sql.lowerAscii().contains("drop")`, `{"sql":"DROP table x"}`, "yes"},
		{`args.text == "a\"é\n😀"`, `{"text":"a\"\u00e9\n\ud83d\ude00"}`, "yes"},
		{`args.n == 9007199254740993`, `{"n":9007199254740993}`, "yes"},
		{`args.n == 9007199254740993`, `{"n":9007199254740992}`, "no"},
		{`args.n > 9223372036854775807`, `{"n":18446744073709551615}`, "yes"},
		{`args.n == 18446744073709551615u`, `{"n":18446744073709551615}`, "yes"},
		{`args.n > 10`, `{"n":1e3}`, "yes"},
		{`args.n < 10.5`, `{"n":-3}`, "yes"},
		{`args.n == 5`, `{"n":5.0}`, "yes"},
		{`args.none == null`, `{"none":null}`, "yes"},
		{`args.yes == true && args.no == false`, `{"yes":true,"no":false}`, "yes"},
		{`has(args.force) && args.force == true`, `{}`, "no"},
		{`args.?force.orValue(false) == true`, `{}`, "no"},
		{`args.?force.orValue(false) == true`, `{"force":true}`, "yes"},
		{`size(args) == 0`, ``, "yes"},
		{`"ops" in principal.groups && principal.name == "ci" && principal.owner == "ci"`, ``, "yes"},
		{`server == "db" && tool == "query"`, ``, "yes"},
		{`args.list.exists(x, x.name == "b")`, `{"list":[{"name":"a"},{"name":"b"}]}`, "yes"},
		{`args.n > 5 || true`, `{}`, "yes"},
	} {
		if got := verdict(t, c.when, c.arguments); got != c.want {
			t.Errorf("%s over %s: %s, want %s", c.when, c.arguments, got, c.want)
		}
	}
}

func TestUndecidableConditionReportsReasonWithoutValues(t *testing.T) {
	const missing, unreadable, big = "a value that it reads does not exist", "the arguments are not a strict JSON object", "too large to compare"
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	for _, c := range []struct{ when, arguments, want string }{
		{`args.force == true`, `{}`, missing},
		{`args.list[3] == 1`, `{"list":[1]}`, missing},
		{`args.n > 5`, `{"n":"secret"}`, "does not have the expected type"},
		{`args.n.startsWith("a")`, `{"n":12}`, "does not have the expected type"},
		{`timestamp(args.at) > timestamp("2026-01-01T00:00:00Z")`, `{"at":"secret"}`, "it cannot use a value"},
		{`args.n / args.m == 1`, `{"n":1,"m":0}`, "it cannot use a value"},
		{`args.n == 5`, `{"n":18446744073709551616}`, big},
		{`args.n != 5`, `{"n":18446744073709551616}`, big},
		{`args.n > 1e18`, `{"n":-9223372036854775809}`, big},
		{`args.n < 5.0`, `{"n":1e999}`, big},
		{`args.list[0] > 5`, `{"list":[18446744073709551616]}`, big},
		{`args.list.exists(x, x > 5)`, `{"list":[18446744073709551616]}`, big},
		{`args.list.all(x, x < 5)`, `{"list":[1,18446744073709551616]}`, big},
		{`args["n"] in [1, 2]`, `{"n":18446744073709551616}`, big},
		{`has(args.o.n) && args.o.n == 1`, `{"o":{"n":18446744073709551616}}`, big},
		{`args.?n.orValue(1) == 1`, `{"n":18446744073709551616}`, big},
		{`args.a == 1`, `{"a":2,"a":1}`, unreadable},
		{`args.a == 1`, `{"a":1,"\u0061":2}`, unreadable},
		{`args.a == 1`, `{"b":"\ud800","a":1}`, unreadable},
		{`args.a == 1`, "{\"a\":1,\"b\":\"\xff\"}", unreadable},
		{`args.a == 1`, `{"a":1`, unreadable},
		{`args.a == 1`, `{"a":1}{}`, unreadable},
		{`size(args) == 0`, `[]`, unreadable},
		{`size(args) == 0`, ` `, unreadable},
		{`size(args) == 0`, deep, unreadable},
	} {
		got := verdict(t, c.when, c.arguments)
		if !strings.Contains(got, c.want) || strings.Contains(got, "secret") {
			t.Errorf("%s over %.60s: %q, want %q", c.when, c.arguments, got, c.want)
		}
	}
}

func TestAConditionThatCostsTooMuchIsStopped(t *testing.T) {
	list := `{"list":[` + strings.Repeat("1,", 3000) + `1]}`
	env, err := newEnv()
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{`args.list.all(x, args.list.all(y, x + y > 0))`, `args.list.all(x, !(2 in args.list))`} {
		c, issues := compile(env, when)
		if issues != nil {
			t.Fatal(issues)
		}
		c.timeout = time.Hour // the cost limit must end it, not the timeout
		if _, why := c.eval(&facts{in: &Input{Arguments: []byte(list)}}); !strings.Contains(why, "exceeded the cost limit") {
			t.Errorf("%s with 3001 items: %q", when, why)
		}
	}
	text := `{"text":"` + strings.Repeat("a", 1<<20) + `"}`
	if got := verdict(t, `args.text.contains("b")`, text); got != "no" {
		t.Errorf("a look through 1 MiB: %s", got)
	}
	if got := verdict(t, `args.text.matches("a*b")`, text); !strings.Contains(got, "too large for a regular expression") {
		t.Errorf("a regular expression over 1 MiB: %s", got)
	}
	text = `{"text":"` + strings.Repeat("a", 60<<10) + `b"}`
	if got := verdict(t, `args.text.matches("^a*b$")`, text); got != "yes" {
		t.Errorf("a regular expression over 60 KiB: %s", got)
	}
}

func TestALoopThatTakesTooLongIsStopped(t *testing.T) {
	env, err := newEnv()
	if err != nil {
		t.Fatal(err)
	}
	c, issues := compile(env, `args.list.all(x, x > 0)`)
	if issues != nil {
		t.Fatal(issues)
	}
	if !c.loops {
		t.Fatal("the loop was not seen")
	}
	c.timeout = time.Nanosecond
	in := &Input{Arguments: []byte(`{"list":[` + strings.Repeat("1,", 3000) + `1]}`)}
	if _, why := c.eval(&facts{in: in}); !strings.Contains(why, "too long") {
		t.Errorf("why: %q", why)
	}
	c.timeout = time.Hour
	if holds, why := c.eval(&facts{in: in}); !holds || why != "" {
		t.Errorf("with time enough: %v %q", holds, why)
	}
}

func TestArgumentsAreDecodedOnceAndOnlyWhenAsked(t *testing.T) {
	p := mustParse(t, `
rules:
  - {name: a, match: {server: other}, when: args.x == 1, level: 3}
  - {name: b, when: 'tool == "none"', level: 3}
`)
	// A condition over invalid arguments fails. The conditions below do not read the arguments.
	if a := p.Assess(&Input{Server: "s", Tool: "t", ServerRisk: Low, Arguments: []byte(`{`)}); a.Level != Low {
		t.Errorf("arguments were looked at: %+v", a)
	}
	known := &facts{in: &Input{Arguments: []byte(`{"a":[1,2,3]}`)}}
	first, _ := known.ResolveName("args")
	again, _ := known.ResolveName("args")
	if first != again {
		t.Error("the arguments were decoded twice")
	}
}

func TestConditionsAreCheckedWhenThePolicyIsRead(t *testing.T) {
	env, err := newEnv()
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		`principal.nmae == "x"`:        "name, owner and groups",
		`principal.name == 5`:          "does not work between",
		`arg.x == 1`:                   `did you mean "args"`,
		`args.x`:                       "must return true or false",
		`size(args)`:                   "must return true or false",
		`args.x ==`:                    "is incomplete",
		`tool.matches("[")`:            "regular expression",
		`tool.matches(args.x)`:         "must be a literal",
		`tool.matches("a{900}")`:       "program size",
		`tool.replace("", tool) == ""`: "is not supported in conditions",
		`undefined_function(args)`:     "is unknown",
		`tool == "` + strings.Repeat("x", 5000) + `"`: "exceeds limit",
	} {
		_, issues := compile(env, source)
		if text := fmt.Sprint(issues); len(issues) == 0 || !strings.Contains(text, want) {
			t.Errorf("%.40s: %s, want %q", source, text, want)
		}
	}
}
