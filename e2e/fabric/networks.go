package fabric

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Network is one network of a compose file.
type Network struct {
	Internal bool `yaml:"internal"`
	IPAM     struct {
		Config []struct {
			Subnet string `yaml:"subnet"`
		} `yaml:"config"`
	} `yaml:"ipam"`
}

// Attached are the networks of a service: a list of names, or a mapping from them to
// what the service is there.
type Attached []Attachment

// Attachment is a network of a service; Address is "" where the engine chooses.
type Attachment struct{ Name, Address string }

// On are networks on which the engine chooses the address.
func On(names ...string) (a Attached) {
	for _, name := range names {
		a = append(a, Attachment{Name: name})
	}
	return a
}

// UnmarshalYAML reads both forms.
func (a *Attached) UnmarshalYAML(read func(any) error) error {
	var names []string
	if read(&names) == nil {
		*a = On(names...)
		return nil
	}
	var order yaml.MapSlice
	var all map[string]struct {
		Address string `yaml:"ipv4_address"`
	}
	if err := errors.Join(read(&order), read(&all)); err != nil {
		return fmt.Errorf("the networks of a service are a list or a mapping: %w", err)
	}
	*a = nil
	for _, item := range order {
		name := fmt.Sprint(item.Key)
		*a = append(*a, Attachment{name, all[name].Address})
	}
	return nil
}

// moved is a subnet of a file and the one that stands for it here: many projects run side
// by side, each with its own.
type moved struct{ from, to netip.Prefix }

// address is what an address of the file is here.
func (p *Project) address(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("an address of the compose file: %w", err)
	}
	for _, m := range p.moved {
		if m.from.Contains(a) {
			to, host := m.to.Addr().As4(), a.As4()
			to[3] = host[3]
			return netip.AddrFrom4(to), nil
		}
	}
	return a, nil
}

// hosts are lines of /etc/hosts as compose writes them, NAME:ADDRESS.
func (p *Project) hosts(lines []string) (here []string, err error) {
	for _, line := range lines {
		name, text, _ := strings.Cut(line, ":")
		if _, err := netip.ParseAddr(text); err != nil { // such as host-gateway
			here = append(here, line)
			continue
		}
		a, err := p.address(text)
		if err != nil {
			return nil, err
		}
		here = append(here, name+":"+a.String())
	}
	return here, nil
}

// subnetTries is how many subnets are tried: others may be taken by whatever runs here.
const subnetTries = 64

// network makes a network of the file.
func (p *Project) network(ctx context.Context, name string, n Network) error {
	p.networks[name] = "callyard-" + p.run + "-" + name
	o := client.NetworkCreateOptions{Internal: n.Internal, Labels: p.engine.labels}
	create := func() error {
		_, err := p.engine.docker.NetworkCreate(ctx, p.networks[name], o)
		if err != nil {
			return fmt.Errorf("making the network %s: %w", name, err)
		}
		return nil
	}
	if len(n.IPAM.Config) == 0 {
		return create()
	}
	from, err := netip.ParsePrefix(n.IPAM.Config[0].Subnet)
	if err != nil || from.Bits() != 24 || !from.Addr().Is4() {
		return fmt.Errorf("the subnet %q of the network %s is none of 256 addresses", n.IPAM.Config[0].Subnet, name)
	}
	for range subnetTries {
		to := from.Addr().As4()
		to[2] = byte(rand.IntN(256))
		m := moved{from, netip.PrefixFrom(netip.AddrFrom4(to), from.Bits())}
		o.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: m.to}}}
		if err = create(); err == nil {
			p.moved = append(p.moved, m)
			return nil
		}
		if !strings.Contains(err.Error(), "overlaps") {
			return err
		}
	}
	return err
}
