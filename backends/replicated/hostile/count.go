package hostile

// Counts is what has happened in a cluster, and what there is now.
type Counts struct {
	Swaps   int // calls of Swap
	Applied int // swaps that changed a record, now or later
	Refused int // swaps that found another revision
	Gets    int // calls of Get that arrived
	Strikes int // faults, delays not counted

	Late     int // swaps that may still be applied, whose callers have left
	Records  int
	Follows  int // calls of Follow under way
	Sessions int // sessions that have not ended
	Expiring int // expiring keys that have not expired
}

// Counts counts.
func (c *Cluster) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts
	n.Records = len(c.records)
	for st := range c.streams {
		if st.notify != nil {
			n.Follows++
		}
	}
	for _, s := range c.sessions {
		if !s.ended {
			n.Sessions++
		}
	}
	for _, k := range c.expiring {
		if k.live() {
			n.Expiring++
		}
	}
	return n
}
