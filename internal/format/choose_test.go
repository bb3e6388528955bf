package format

import (
	"strings"
	"testing"
)

func TestTokenEstimateFollowsTheText(t *testing.T) {
	small, large := Tokens([]byte(`{"name":"echo"}`)), Tokens([]byte(`{"name":"echo","description":"`+strings.Repeat("word ", 100)+`"}`))
	if small < 10 || small > 20 || large-small < 90 || large-small > 130 {
		t.Errorf("%d and %d tokens", small, large)
	}
	if spaced := Tokens([]byte("{ \"name\" :\n \"echo\" }")); spaced > small+4 {
		t.Errorf("white space costs %d tokens", spaced-small)
	}
	if han := Tokens([]byte(`温度温度`)); han < 4 {
		t.Errorf("four characters cost %d tokens", han)
	}
}

func BenchmarkTool(b *testing.B) {
	tools := recorded(b)
	for _, f := range []Format{OpenAI, Anthropic, Gemini} {
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				t := tools[i%len(tools)]
				f.Tool(Name(string(t.Server), t.Name), t, false)
			}
		})
	}
}
