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

// Attached lists the networks of a service. In YAML it is a list of names, or a mapping from
// names to attachments.
type Attached []Attachment

// Attachment attaches a service to a network. If Address is "", the engine chooses it.
type Attachment struct{ Name, Address string }

// On returns attachments whose addresses the engine chooses.
func On(names ...string) (a Attached) {
	for _, name := range names {
		a = append(a, Attachment{Name: name})
	}
	return a
}

// UnmarshalYAML decodes both forms.
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

// subnetChange maps a subnet of the file to the one that is used here, because concurrent projects
// need different subnets.
type subnetChange struct{ from, to netip.Prefix }

// address translates an address of the file.
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

// hosts translates lines of /etc/hosts in the format of compose, NAME:ADDRESS.
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

// subnetTries limits the attempts to find a free subnet.
const subnetTries = 64

// network creates a network of the file.
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
		m := subnetChange{from, netip.PrefixFrom(netip.AddrFrom4(to), from.Bits())}
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
