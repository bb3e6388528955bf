package base62

import (
	"math"
	"strings"
	"testing"
)

func TestEncodeHasTheWantedWidth(t *testing.T) {
	for _, c := range []struct {
		n     uint64
		width int
		want  string
	}{{0, 3, "000"}, {61, 1, "z"}, {62, 2, "10"}, {62, 1, "0"}, {3843, 2, "zz"}, {math.MaxUint32, 6, "4gfFC3"}, {math.MaxUint64, 11, "LygHa16AHYF"}} {
		if got := Encode(c.n, c.width); got != c.want {
			t.Errorf("%d in %d digits is %q, want %q", c.n, c.width, got, c.want)
		}
	}
}

func TestRandomHasAllDigits(t *testing.T) {
	text := Random(10_000)
	if len(text) != 10_000 || strings.Trim(text, digits) != "" {
		t.Fatalf("%d digits: %.100q", len(text), text)
	}
	for _, digit := range digits {
		if n := strings.Count(text, string(digit)); n < 80 || n > 260 { // 161 on average
			t.Errorf("%c occurs %d times", digit, n)
		}
	}
}
