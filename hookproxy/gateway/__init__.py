"""The gateway: hookproxy as a service for several people, who reach the servers through it and cannot go around it.

It starts or reaches the servers, holds their credentials and the policy, and knows who calls. A session is a proxy as
under `hookproxy run`; nothing in the rooms below knows that there are several.
"""
