package main

import (
	"time"

	"flexid/cmd/internal/api"

	"github.com/spf13/cobra"
)

func (p *program) writes() *cobra.Command {
	verb := func(use, short string) *cobra.Command {
		c := &cobra.Command{Use: use + " [EVIDENCE]", Short: short, Args: atMost(1), ValidArgsFunction: p.completeStop}
		act := p.person(c)
		c.RunE = func(c *cobra.Command, args []string) error {
			a, err := act()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				a.Evidence = args[0]
			}
			return p.operate(c, "/api/v1/writes/"+use, a)
		}
		return c
	}
	return grouped("writes", "stop and resume what goes to the ERP",
		verb("stop", "no document is sent until resume; intake goes on"),
		verb("resume", "open what waits for a person"))
}

func (p *program) company() *cobra.Command {
	c := &cobra.Command{Use: "accept", Short: "say what happened to the company in the ERP", Args: exactly(0)}
	fresh := c.Flags().Bool("new", false, "it is another company under the name; what the ledger knows is history")
	restored := c.Flags().Bool("restored", false, "it was set back to an earlier state; what was confirmed since is looked up")
	company := c.Flags().String("company", "", "with --new, where nothing asks for it: the company's name in its address")
	yes := c.Flags().BoolP("yes", "y", false, "with --company: do not ask")
	act := p.person(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *company != "" && !*fresh {
			return usagef("--company belongs to --new")
		}
		if *fresh == *restored {
			return usagef("say one of --new (another company took the name) and --restored (set back to an earlier state)")
		}
		a, err := act()
		if err != nil {
			return err
		}
		a.How = "new"
		if *restored {
			a.How = "restored"
		}
		if a.Company = *company; a.Company != "" && !*yes {
			if err := p.agreed("all that the ledger knows of " + a.Company + " becomes history"); err != nil {
				return err
			}
		}
		return p.operate(c, "/api/v1/company/accept", a)
	}
	return grouped("company", "the company behind the ledger", c)
}

func (p *program) ledger() *cobra.Command {
	c := &cobra.Command{
		Use: "accept-empty", Short: "begin with an empty ledger where the old one is gone", Args: exactly(0),
		Long: "Begin with an empty ledger, or empty streams, where the old ones are gone; what is still there is kept. Without its\n" +
			"ledger flexid knows of no document: each is looked up in Flexi before its first send. What is missing is told.\n" +
			"Each daemon is asked by itself. The other way out is to restore NATS's files from a backup.",
	}
	act := p.person(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		a, err := act()
		if err != nil {
			return err
		}
		return p.operate(c, "/api/v1/ledger/accept-empty", a)
	}
	return grouped("ledger", "the ledger of documents", c)
}

// operate sends an act on the whole daemon and shows how it stands afterwards.
func (p *program) operate(c *cobra.Command, path string, act api.Act) error {
	if err := needReason(act); err != nil {
		return err
	}
	cl, err := p.client()
	if err != nil {
		return err
	}
	var st api.Status
	if err := cl.post(c.Context(), path, act, &st); err != nil {
		return err
	}
	return p.showStatus(&st)
}

func (p *program) healthcheck() *cobra.Command {
	c := &cobra.Command{Use: "healthcheck", Short: "exit 0 while the daemon is alive", Args: exactly(0)}
	ready := c.Flags().Bool("ready", false, "exit 0 only while NATS and ledger can be used")
	timeout := c.Flags().Duration("timeout", 5*time.Second, "how long to wait for an answer")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := p.clientConfig()
		if err = withoutFault(err, "FLEXID_STATE_DIR"); err != nil {
			return err
		}
		path := "/healthz"
		if *ready {
			path = "/readyz"
		}
		cl := newClient(cfg.API.URL, "")
		cl.http.Timeout = *timeout
		return cl.health(c.Context(), path)
	}
	return c
}
