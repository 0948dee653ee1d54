package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/lockgateway/lockgateway/internal/adminapi"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "lock-gateway",
		Usage: "ls | show | reset | release | gateways | backends | nodes | remove-node",
		Short: "Looks into the locks of a running Caddy, and frees them",
		Long: `
Looks into the locks of a running Caddy, and frees them, through its admin API:
at ` + caddy.DefaultAdminListen + `, at --address, or where --config says.

A lock is written as in the URLs that acquire it: maxValue/lockId, with nothing
escaped.`,
		CobraFunc: addCommands,
	})
}

func addCommands(parent *cobra.Command) {
	parent.Args = cobra.NoArgs // else what is no command gets the help, and succeeds
	parent.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	flags := parent.PersistentFlags()
	flags.String("address", "", "Address of the administration API listener (if --config is not used)")
	flags.StringP("config", "c", "", "Configuration file (if --address is not used)")
	flags.StringP("adapter", "a", "", "Name of config adapter to apply (if --config is used)")
	flags.String("backend", "", "The backend to look into: its id, or its module if only one has that (default: the only one)")
	flags.Bool("json", false, "Print the answer of the administration API as it is")

	ls := addCommand(parent, "ls", "Lists the locks that are held or waited for", cobra.NoArgs, commandList)
	ls.Flags().String("prefix", "", "Only locks whose id begins so; with a slash: whose maxValue/lockId does")
	ls.Flags().String("state", "", "Only locks that are held or waiting; or all, idle ones included")
	ls.Flags().String("sort", "name", "By name, held (for longest) or queue (the longest)")
	ls.Flags().Int("limit", defaultListed, "How many locks to list at most")
	ls.Flags().String("after", "", "List by name from after this lock on")
	ls.Flags().BoolP("watch", "w", false, "List again and again until interrupted")
	ls.Flags().Duration("interval", defaultInterval, "How long to wait before the next list of --watch")

	addCommand(parent, "show <lock>", "Shows who holds a lock and who waits for it", cobra.ExactArgs(1), commandShow)
	addCommand(parent, "reset <lock>", "Frees all slots of a lock and ends all waiting for it", cobra.ExactArgs(1), commandReset)
	release := addCommand(parent, "release <lock>", "Frees one slot of a lock: without --holder, one that is held without a name", cobra.ExactArgs(1), commandRelease)
	release.Flags().String("holder", "", "Frees the slot of this holder, and ends its waiting")
	addCommand(parent, "gateways", "Lists the gateways that share the locks", cobra.NoArgs, commandGateways)
	addCommand(parent, "backends", "Lists the backends that are open", cobra.NoArgs, commandBackends)

	inCluster := []*cobra.Command{
		addCommand(parent, "nodes", "Lists the nodes of a cluster of embedded NATS servers", cobra.NoArgs, commandNodes),
		addCommand(parent, "remove-node <node>", "Makes a node that is gone for good count no more", cobra.ExactArgs(1), commandRemoveNode),
	}
	for _, cmd := range inCluster {
		cmd.Flags().String("cluster", "", "The cluster's name (default: that of the only one)")
	}
}

func addCommand(parent *cobra.Command, use, short string, args cobra.PositionalArgs, run func(*caller) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: caddycmd.WrapCommandFuncForCobra(func(fl caddycmd.Flags) (int, error) {
			c, err := newCaller(fl)
			if err == nil {
				err = run(c)
			}
			if err != nil {
				return caddy.ExitCodeFailedStartup, err
			}
			return caddy.ExitCodeSuccess, nil
		}),
	}
	parent.AddCommand(cmd)
	return cmd
}

// caller calls the administration API for a command.
type caller struct {
	flags   caddycmd.Flags
	address string
	out     io.Writer
}

func newCaller(fl caddycmd.Flags) (*caller, error) {
	address, err := caddycmd.DetermineAdminAPIAddress(fl.String("address"), nil, fl.String("config"), fl.String("adapter"))
	if err != nil {
		return nil, fmt.Errorf("finding the address of the administration API: %w", err)
	}
	return &caller{flags: fl, address: address, out: os.Stdout}, nil
}

// call sends parameters in a body, since Caddy logs URIs, and decodes the answer. With
// --json it prints the answer as it is, too, and reports so.
func (c *caller) call(path string, parameters url.Values, answer any) (printed bool, err error) {
	if backend := c.flags.String("backend"); backend != "" {
		parameters.Set("backend", backend)
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	res, err := caddycmd.AdminAPIRequest(c.address, http.MethodPost, adminapi.Path+path, form, strings.NewReader(parameters.Encode()))
	if err != nil {
		return false, fmt.Errorf("asking Caddy at %s: %w", c.address, apiText(err))
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		return false, fmt.Errorf("asking Caddy at %s: its answer cannot be read: %w", c.address, err)
	}
	if printed = c.flags.Bool("json"); printed {
		_, err = c.out.Write(body)
	}
	return printed, err
}

// apiText takes the text of the API's error out of its JSON.
func apiText(err error) error {
	_, body, found := strings.Cut(err.Error(), ": {")
	var api caddy.APIError
	if !found || json.Unmarshal([]byte("{"+body), &api) != nil || api.Message == "" {
		return err
	}
	return errors.New(api.Message)
}

func (c *caller) lock() url.Values { return url.Values{"lock": {c.flags.Arg(0)}} }

func commandList(c *caller) error {
	if c.flags.Bool("watch") {
		return c.watch(c.flags.Duration("interval"), c.list)
	}
	return c.list(c.out)
}

// list prints the list that the flags ask for.
func (c *caller) list(out io.Writer) error {
	parameters := url.Values{"limit": {strconv.Itoa(c.flags.Int("limit"))}}
	for _, name := range []string{"prefix", "state", "sort", "after"} {
		parameters.Set(name, c.flags.String(name))
	}
	var a listJSON
	inner := *c
	inner.out = out
	printed, err := inner.call("locks", parameters, &a)
	if err != nil || printed {
		return err
	}
	return printList(out, a)
}

func commandShow(c *caller) error {
	var a detailJSON
	printed, err := c.call("lock", c.lock(), &a)
	if err != nil || printed {
		return err
	}
	return printDetail(c.out, a)
}

func commandReset(c *caller) error {
	var a resetJSON
	printed, err := c.call("reset", c.lock(), &a)
	if err != nil || printed {
		return err
	}
	_, err = fmt.Fprintln(c.out, "reset")
	return err
}

func commandRelease(c *caller) error {
	parameters := c.lock()
	named := c.flags.Changed("holder")
	if named {
		parameters.Set("holder", c.flags.String("holder"))
	}
	var a releaseJSON
	printed, err := c.call("release", parameters, &a)
	switch {
	case err != nil:
		return err
	case a.Released && printed:
		return nil
	case a.Released:
		_, err = fmt.Fprintln(c.out, "released")
		return err
	case named:
		return errors.New("nothing was released: that holder has no slot")
	}
	return errors.New("nothing was released: no slot is held without a name; give --holder to release one that is")
}

func commandGateways(c *caller) error {
	var a gatewaysJSON
	printed, err := c.call("gateways", url.Values{}, &a)
	if err != nil || printed {
		return err
	}
	return printGateways(c.out, a)
}

func commandBackends(c *caller) error {
	var a backendsJSON
	printed, err := c.call("backends", url.Values{}, &a)
	if err != nil || printed {
		return err
	}
	return printBackends(c.out, a)
}

func commandNodes(c *caller) error {
	var a adminapi.Nodes
	printed, err := c.call(adminapi.NodesRoute, c.cluster(), &a)
	if err != nil || printed {
		return err
	}
	return printNodes(c.out, a)
}

func commandRemoveNode(c *caller) error {
	parameters := c.cluster()
	parameters.Set("node", c.flags.Arg(0))
	var a adminapi.RemovedNode
	printed, err := c.call(adminapi.RemoveNodeRoute, parameters, &a)
	if err != nil || printed {
		return err
	}
	_, err = fmt.Fprintln(c.out, "removed")
	return err
}

func (c *caller) cluster() url.Values {
	parameters := url.Values{}
	if name := c.flags.String("cluster"); name != "" {
		parameters.Set("cluster", name)
	}
	return parameters
}
