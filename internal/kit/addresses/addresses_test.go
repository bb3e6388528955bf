package addresses

import (
	"errors"
	"net/netip"
	"testing"
)

func TestAddressClassification(t *testing.T) {
	for text, want := range map[string]struct{ never, private, public bool }{
		"8.8.8.8":              {public: true},
		"::ffff:8.8.8.8":       {public: true},
		"2606:4700:4700::1111": {public: true},
		"127.0.0.1":            {private: true},
		"::1":                  {private: true},
		"::ffff:10.1.2.3":      {private: true},
		"172.16.0.1":           {private: true},
		"192.168.0.1":          {private: true},
		"100.64.0.1":           {private: true},
		"fd12::1":              {private: true},
		"192.0.2.1":            {},
		"64:ff9b::7f00:1":      {},
		"169.254.169.254":      {never: true},
		"fe80::1%eth0":         {never: true},
		"0.0.0.0":              {never: true},
		"224.0.0.1":            {never: true},
		"255.255.255.255":      {never: true},
		"168.63.129.16":        {never: true},
		"::ffff:168.63.129.16": {never: true},
		"192.0.0.192":          {never: true},
		"100.100.100.200":      {never: true, private: true},
		"fd00:ec2::254":        {never: true, private: true},
		"fd20:ce::254":         {never: true, private: true},
	} {
		ip := netip.MustParseAddr(text)
		if Never(ip) != want.never || Private(ip) != want.private || Public(ip) != want.public {
			t.Errorf("%s: never %t, private %t, public %t", text, Never(ip), Private(ip), Public(ip))
		}
	}
}

func TestControlRefusesOtherNetworksThanTCP(t *testing.T) {
	refused, judged := errors.New("refused"), errors.New("judged")
	control := Control(refused, func(netip.AddrPort) error { return judged })
	for _, c := range []struct {
		network, address string
		want             error
	}{
		{"tcp4", "127.0.0.1:80", judged}, {"tcp6", "[::1]:80", judged}, {"udp4", "127.0.0.1:80", refused}, {"unix", "/run/socket", refused}, {"tcp", "name:80", refused},
	} {
		if err := control(c.network, c.address, nil); !errors.Is(err, c.want) {
			t.Errorf("%s %s: %v", c.network, c.address, err)
		}
	}
}
