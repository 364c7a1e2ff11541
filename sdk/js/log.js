import host from 'watchfire:rule/host@0.1.0';

/** A line for the host's log. It is there in a built rule only: import it where the rule is never run by Node. */
export function log(line) {
  host.log(line);
}
