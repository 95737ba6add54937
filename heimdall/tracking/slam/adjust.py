import numpy as np, pycolmap
from types import SimpleNamespace
F=520.
def adjust(Rs, ts, X, oc, op, uv, fixed, *, sigma, weights=None, steps=8):
    rec = pycolmap.Reconstruction(); rec.add_camera_with_trivial_rig(pycolmap.Camera(model='SIMPLE_PINHOLE', width=640, height=480, params=[1/sigma, 0., 0.], camera_id=1)); tr = [[] for _ in X]; ims = [[] for _ in Rs]
    for c, i, m in zip(oc.tolist(), op.tolist(), uv / sigma): tr[i].append((c, len(ims[c]))); ims[c].append(m)
    for c in range(len(Rs)):
        rec.add_image_with_trivial_frame(pycolmap.Image(name=str(c), keypoints=np.array(ims[c]), camera_id=1, image_id=c + 1), pycolmap.Rigid3d(pycolmap.Rotation3d(Rs[c]), ts[c]))
    pid = [rec.add_point3D(X[i], pycolmap.Track([pycolmap.TrackElement(c + 1, j) for c, j in tr[i]])) for i in range(len(X))]
    o = pycolmap.BundleAdjustmentOptions(); o.refine_focal_length = o.refine_principal_point = o.refine_extra_params = o.print_summary = False; o.ceres.solver_options.max_num_iterations = steps; o.ceres.solver_options.num_threads = 1
    o.ceres.loss_function_type = pycolmap.LossFunctionType.CAUCHY; o.ceres.loss_function_scale = 2.
    cf = pycolmap.BundleAdjustmentConfig()
    for c in range(len(Rs)): cf.add_image(c + 1)
    for c in np.flatnonzero(fixed): cf.set_constant_rig_from_world_pose(rec.image(int(c) + 1).frame_id)
    pycolmap.create_default_bundle_adjuster(o, cf, rec).solve(); M = [rec.image(c + 1).cam_from_world() for c in range(len(Rs))]
    R2, t2 = np.array([m.rotation.matrix() for m in M]), np.array([m.translation for m in M]); X2 = np.array([rec.point3D(p).xyz for p in pid]); Y = np.einsum('nij,nj->ni', R2[oc], X2[op]) + t2[oc]; e = np.linalg.norm(Y[:, :2] / Y[:, 2:] - uv, axis=1); e[Y[:, 2] <= 0] = np.inf
    return SimpleNamespace(rotations=R2, translations=t2, points=X2, errors=e)
def refine_points(R, t, oc, op, uv, X):
    P=len(X); A=np.zeros((P,3,3)); b=np.zeros((P,3))
    r0=R[oc,0]-uv[:,:1]*R[oc,2]; r1=R[oc,1]-uv[:,1:]*R[oc,2]; b0=-(t[oc,0]-uv[:,0]*t[oc,2]); b1=-(t[oc,1]-uv[:,1]*t[oc,2])
    np.add.at(A,op,r0[:,:,None]*r0[:,None]+r1[:,:,None]*r1[:,None]); np.add.at(b,op,r0*b0[:,None]+r1*b1[:,None])
    Y=np.linalg.solve(A+1e-12*np.eye(3),b[...,None])[...,0]
    c=-np.einsum('nji,nj->ni',R,t); ray=Y[op]-c[oc]; ray/=np.linalg.norm(ray,axis=1,keepdims=True)+1e-12
    par=np.zeros(P)
    for p in range(P):
        v=ray[op==p]
        if len(v)>1: par[p]=np.arccos(np.clip((v@v.T).min(),-1,1))
    Z=np.einsum('nij,nj->ni',R[oc],Y[op])+t[oc]; e=np.linalg.norm(Z[:,:2]/Z[:,2:]-uv,axis=1); e[Z[:,2]<=0]=np.inf
    worst=np.zeros(P); np.maximum.at(worst,op,e)
    return Y,worst,par
