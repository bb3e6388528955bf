package webhook

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/callyard/callyard/internal/kit/addresses"
	"github.com/callyard/callyard/pkg/schema"
)

func TestURLIsCheckedBeforeAcceptance(t *testing.T) {
	vouched := Rules{AllowedHosts: []string{"hooks.corp", "10.1.2.3:9000", "*.svc.example:8443", "[fd00::7]"}}
	dev := Rules{AllowPrivate: true}
	for _, c := range []struct {
		url   string
		rules Rules
		want  string // part of the sentence; empty: taken
	}{
		{"https://hooks.example.com/x?token=1", Rules{}, ""},
		{"HTTPS://Hooks.Example.COM:443", Rules{}, ""},
		{"https://8.8.8.8/x", Rules{}, ""},
		{"https://[2606:4700::1111]/x", Rules{}, ""},
		{"https://hooks.example.com:8443/x", Rules{Ports: []int{8443}}, ""},
		{"https://hooks.example.com:80/x", Rules{}, ""},
		{"http://hooks.corp/x", vouched, ""},
		{"http://HOOKS.corp:1234/x", vouched, ""},
		{"http://10.1.2.3:9000/x", vouched, ""},
		{"http://[fd00::7]:90/x", vouched, ""},
		{"https://a.svc.example:8443/x", vouched, ""},
		{"http://localhost:9000/x", dev, ""},
		{"http://127.0.0.1:9000/x", dev, ""},
		{"http://[::1]:9000/x", dev, ""},
		{"http://192.168.1.5/x", dev, ""},
		{"https://redis:6379/x", dev, ""},

		{"", Rules{}, "is empty"},
		{"https://example.com/" + strings.Repeat("a", 2048), Rules{}, "longer than 2048"},
		{"http://example.com/x", Rules{}, "plain http is only for hosts that the operator allowed"},
		{"http://example.com/x", dev, "plain http is only for hosts that the operator allowed"},
		{"http://8.8.8.8/x", dev, "plain http is only for hosts that the operator allowed"},
		{"ftp://example.com/x", Rules{}, "does not begin with https://"},
		{"file:///etc/passwd", Rules{}, "is not an absolute URL"},
		{"https:example.com", Rules{}, "is not an absolute URL"},
		{"//example.com/x", Rules{}, "does not begin with https://"},
		{"https:///x", Rules{}, "is not an absolute URL"},
		{"example.com/x", Rules{}, "is not an absolute URL"},
		{"https://u:p@example.com/x", Rules{}, "user or password"},
		{"https://@example.com/x", Rules{}, "user or password"},
		{"https://example.com#@hooks.corp/", vouched, "fragment"},
		{"https://example.com/x#", Rules{}, "fragment"},
		{"https://example.com\\@hooks.corp/", vouched, "characters"},
		{"https://exa mple.com/", Rules{}, "characters"},
		{"https://example.com/\n", Rules{}, "characters"},
		{"https://\u2460\u2461\u2466.0.0.1/", Rules{}, "characters"},
		{"https://ex%61mple.com/", Rules{}, "is not an absolute URL"},
		{"https://[fe80::1%25lo]/", dev, "% in its host"},
		{"https://example.com:/x", Rules{}, "no port"},
		{"https://example.com:0/x", Rules{}, "an invalid port"},
		{"https://example.com:65536/x", Rules{}, "an invalid port"},
		{"https://example.com:22/x", Rules{}, "a port other than"},
		{"https://example.com.:443/x", Rules{}, "neither a name nor an address"},
		{"https://exa_mple..com/x", Rules{}, "neither a name nor an address"},
		{"https://2130706433/x", dev, "neither a name nor an address"},
		{"https://0x7f.1/x", Rules{}, "neither a name nor an address"},
		{"https://127.0.0.1/x", Rules{}, "internal network"},
		{"https://localhost/x", Rules{}, "internal network"},
		{"https://a.localhost/x", Rules{}, "internal network"},
		{"https://redis/x", Rules{}, "internal network"},
		{"https://169.254.169.254/latest", dev, "internal network"},
		{"https://[fd00:ec2::254]/latest", dev, "internal network"},
		{"https://10.1.2.3:9001/x", vouched, "internal network"},
		{"https://svc.example:8443/x", vouched, "a port other than"},
		{"https://hooks.corp.evil.example:1/x", vouched, "a port other than"},
	} {
		fault := CheckURL(c.url, c.rules)
		switch {
		case c.want == "" && fault != nil:
			t.Errorf("%q is refused: %s", c.url, fault.Detail)
		case c.want != "" && fault == nil:
			t.Errorf("%q is taken", c.url)
		case fault != nil && (fault.Kind != schema.KindInvalidRequest || !strings.Contains(fault.Detail, c.want)):
			t.Errorf("%q: %s: %s", c.url, fault.Kind, fault.Detail)
		}
	}
}

func TestInvalidRulesAreReported(t *testing.T) {
	for _, r := range []Rules{{AllowedHosts: []string{""}}, {AllowedHosts: []string{"https://a.example"}}, {AllowedHosts: []string{"a.example:http"}}, {AllowedHosts: []string{"*"}}, {AllowedHosts: []string{"*.*.a"}}, {Ports: []int{0}}, {Ports: []int{70000}}} {
		if r.check() == nil {
			t.Errorf("%+v is taken", r)
		}
	}
	good := Rules{AllowedHosts: []string{"a", "a.example:1", "*.a.example", "*.a.example:2", "10.0.0.1", "[::1]:8", "::1"}, Ports: []int{8443}}
	if fault := good.check(); fault != nil {
		t.Error(fault)
	}
}

func FuzzAcceptedURLIsPublicHTTPS(f *testing.F) {
	for _, seed := range append(spellings("127.0.0.1", "8080"), "https://example.com/x", "https://[::ffff:8.8.8.8]/", "https://a@b#c") {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		to, fault := parseURL(raw, Rules{})
		if fault != nil {
			if to.url != nil || strings.Contains(fault.Detail, "\n") {
				t.Errorf("%q: refused with a URL or a strange sentence", raw)
			}
			return
		}
		u := to.url
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" {
			t.Errorf("%q is taken as %v", raw, u)
		}
		if p := u.Port(); p != "" && portNumber(p) != 443 && portNumber(p) != 80 {
			t.Errorf("%q is taken with port %s", raw, p)
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && (addresses.Private(ip) || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast()) {
			t.Errorf("%q is taken and is inner", raw)
		}
		// What is stored is read again before each attempt: it must stay the same.
		again, fault := parseURL(u.String(), Rules{})
		if fault != nil || again.receiver != to.receiver {
			t.Errorf("%q is %q the second time: %v", to.receiver, again.receiver, fault)
		}
	})
}
