-- Runs beside: 0001_notify
-- What every instance must do about streams: end those of revoked tokens, end those of a user, follow a tenant's policy.

-- One row; its lock makes revisions visible in their order.
create table notify.stream_order_head (
  is_head boolean primary key default true check (is_head),
  revision bigint not null
);
insert into notify.stream_order_head (revision) values (0);

-- Kept for twice as long as any token is valid.
create table notify.stream_order (
  revision bigint primary key,
  -- 1 tokens of the user that were issued until at_ms are void, 2 so is one token, 3 streams of the user end, 4 the
  -- policy of the tenant has changed.
  kind smallint not null,
  tenant_id text collate "C" not null,
  user_id text collate "C" not null default '',
  token_id text collate "C" not null default '',
  at_ms bigint not null,
  made_at timestamptz not null default clock_timestamp()
);
create index stream_order_user on notify.stream_order (tenant_id, user_id, at_ms) where kind = 1;
create index stream_order_token on notify.stream_order (tenant_id, token_id) where kind = 2;
create index stream_order_made on notify.stream_order (made_at);

create table notify.stream_policy (
  tenant_id text collate "C" primary key,
  ends_with_token boolean not null
);

-- The time of issue of a token for the user, after every revocation that is visible, whatever the clocks say.
create function notify.issue_ms(for_tenant text, for_user text) returns bigint
  language sql volatile as
$$
  select greatest((extract(epoch from clock_timestamp()) * 1000)::bigint, (
    select max(o.at_ms) + 1 from notify.stream_order o
    where o.kind = 1 and o.tenant_id = for_tenant and o.user_id = for_user))
$$;

-- Gives one order, and wakes all who listen: a payload that begins with a space is none of a notification.
create function notify.order_streams(order_kind smallint, for_tenant text, for_user text, for_token text) returns bigint
  language plpgsql as
$$
declare
  new_revision bigint;
begin
  update notify.stream_order_head set revision = revision + 1 returning revision into new_revision;
  insert into notify.stream_order (revision, kind, tenant_id, user_id, token_id, at_ms)
    values (new_revision, order_kind, for_tenant, for_user, for_token, notify.issue_ms(for_tenant, for_user));
  perform pg_notify('notify_stored', ' orders ' || new_revision::text);
  return new_revision;
end
$$;
